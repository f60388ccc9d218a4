"""Live posts: the reply to a start shows how far the task is, with what can be done about it.

A post is changed now and then while its task runs, and once more at its end, when its buttons go.
Which post shows which task is in the journal: a gateway that is started again goes on with them,
also with those whose tasks have ended while there was none.
"""

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from backburner.gateway import wording
from backburner.gateway.journal import Card, Journal
from backburner.gateway.platform import Later, Post, Refused
from backburner.gateway.posting import Lines
from backburner.model.errors import BackburnerError, NotFound
from backburner.model.events import EventKind

if TYPE_CHECKING:
    from backburner.app import Backburner, Task

_log = logging.getLogger("backburner.gateway")

EDIT_EVERY_S = 3.0
"""Between two changes of a post: platforms count them like posts."""

_AGAIN_S = 5.0
_LONGEST_WAIT_S = 300.0
_SHOWN = frozenset(
    {
        EventKind.STARTED,
        EventKind.DETAIL,
        EventKind.PROGRESS,
        EventKind.ASKED,
        EventKind.ANSWERED,
        EventKind.WITHDRAWN,
        EventKind.FINISHED,
    }
)


class Cards:
    """All live posts of a gateway."""

    def __init__(
        self, backburner: "Backburner", journal: Journal, lines: Lines, every_s: float
    ) -> None:
        self._backburner = backburner
        self._journal = journal
        self._lines = lines
        self._every_s = every_s
        self._following: dict[str, asyncio.Task[None]] = {}

    def resume(self) -> None:
        """Go on with those of the journal."""
        for card in self._journal.cards:
            self._follow(card)

    def show(self, card: Card, shown: str) -> None:
        """From now on this post, whose text is this, shows the task."""
        self._journal.show(card)
        self._follow(card, shown)

    async def close(self) -> None:
        """They stay as they are; the journal knows them."""
        following = list(self._following.values())
        for each in following:
            each.cancel()
        if following:
            await asyncio.wait(following)

    def _follow(self, card: Card, shown: str | None = None) -> None:
        if card.task in self._following:
            return
        task = asyncio.create_task(self._keep(card, shown))
        self._following[card.task] = task
        task.add_done_callback(lambda _: self._following.pop(card.task, None))

    async def _keep(self, card: Card, shown: str | None) -> None:
        """Until the end is shown. ``shown`` is what stands there, where that is known."""
        wait = _AGAIN_S
        while True:
            try:
                await self._show_to_the_end(card, shown)
            except (Refused, NotFound):
                pass  # the post or the task is gone
            except Later as error:
                await asyncio.sleep(max(error.after_s or wait, 0.0))
                wait = min(wait * 2, _LONGEST_WAIT_S)
                continue
            except BackburnerError as error:
                _log.warning("a live post waits: %s", error)
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT_S)
                continue
            self._journal.drop_card(card.task)
            return

    async def _show_to_the_end(self, card: Card, shown: str | None) -> None:
        session = self._backburner.session(card.session, owner=card.owner)
        task = await session.task(card.task)
        changed = asyncio.Event()
        changed.set()
        watching = asyncio.create_task(self._watch(task, changed))
        try:
            while True:
                await changed.wait()
                changed.clear()
                await task.refresh()
                text = wording.live(task.record)
                if text != shown or task.state.terminal:
                    await self._edit(card, task, text)
                    shown = text
                if task.state.terminal:
                    return
                await asyncio.sleep(self._every_s)
                if watching.done():
                    changed.set()  # its end, or what it raised, which `refresh` then raises
        finally:
            watching.cancel()
            with contextlib.suppress(BackburnerError, asyncio.CancelledError):
                await watching

    async def _watch(self, task: "Task", changed: asyncio.Event) -> None:
        try:
            async for event in task.events():
                if event.kind in _SHOWN:
                    changed.set()
        finally:
            changed.set()

    async def _edit(self, card: Card, task: "Task", text: str) -> None:
        post = Post(f"card:{card.task}", text, wording.buttons(task.record))
        await self._lines.to(card.place).edit(card.post, post)
