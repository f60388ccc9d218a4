"""What sessions are told, brought to their chats: over the follow-up of the runtime (A8, X1).

A signal becomes a letter, which is recorded before it is sent; the signal is acknowledged when the
letter has arrived. Many ends that come together are one letter, of a line each. A place that takes
nothing at present is asked again when it says; a platform that is away, more and more seldom.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backburner.gateway import wording
from backburner.gateway.desk import Desk
from backburner.gateway.letters import File, Letter, written
from backburner.gateway.media import FILES_MAX, enclosed, files_of
from backburner.gateway.memory import Said
from backburner.gateway.people import People
from backburner.gateway.platform import Button, Later, Place, Refused
from backburner.model import clock
from backburner.model.channels import wait_before_next
from backburner.model.errors import NotFound
from backburner.model.followup import Busy
from backburner.model.followup import Later as NotNow
from backburner.model.signals import END_SIGNALS, GIVEN_UP, INBOX, Signal, SignalKind, SignalState
from backburner.model.states import Kind, State
from backburner.model.task import preview
from backburner.model.values import value
from backburner.store.protocol import Scope

if TYPE_CHECKING:
    from backburner.app import Task

BATCH_S = 0.5
"""Ends that come within this time are told in one go."""

APART_MAX = 3
"""So many ends of jobs that come together are told one by one; more are a list."""

LISTED_MAX = 20

_TRIES_SHOWN = 4
"""A platform that is away is a failure that `backburner signals` shows; from then on it is waited
for: an outage of a night must not lose an answer."""
_AWAY_S = 60.0
_ELSEWHERE_S = 60.0
_REFUSED_S = 2.0
_LAST_LINES = 10
_PRINTED_CHARS = 1_200


@value
class News:
    """One signal, in words."""

    signal: Signal
    text: str
    short: str | None = None
    """In a line, where that can stand in a list; None for what stands for itself."""
    buttons: tuple[Button, ...] = ()
    files: tuple[File, ...] = ()


class Delivery:
    """Of one gateway."""

    def __init__(self, desk: Desk, people: People) -> None:
        self._backburner = desk.backburner
        self._people = people
        self._journal = desk.journal
        self._lines = desk.lines
        self._limits = desk.limits
        self._memory = desk.memory
        self._talking = desk.talking
        self._folder = desk.rights.folder

    def follow(self, scope: Scope, consumer: str) -> asyncio.Task[None]:
        """Tell what this scope is told, until the task is cancelled."""
        return self._backburner.inbox.follow_up(
            scope,
            self.tell,
            batch_s=BATCH_S,
            retry_s=self._backburner.settings.delivery_retry_s,
            consumer=consumer,
        )

    async def try_again(self, scope: Scope) -> None:
        """What the gateway before this one could not bring, now: something may have been mended."""
        failed = (SignalState.FAILED,)
        for signal in await self._backburner.store.signals(scope, states=failed, channel=INBOX):
            await self._backburner.store.resend(signal.key, scope)

    async def tell(self, signals: list[Signal]) -> object:
        """Tell a session this. None when it has arrived; see `runtime.followup`."""
        scope = Scope(signals[0].owner, signals[0].session)
        assert scope.session is not None
        place = self._people.place_of(scope.session)
        if place is None:
            return await self._elsewhere(scope)
        if await self._talking.is_busy(scope):
            raise Busy
        signals = sorted(signals, key=lambda signal: signal.seq)
        refused: list[tuple[list[Signal], Refused]] = []
        try:
            for letter in await self._letters(scope, place, signals):
                try:
                    await self._lines.to(place).tell(letter)
                except Refused as error:
                    # This one alone: what comes with it has done nothing.
                    told = [each for each in signals if each.key in letter.covers]
                    refused.append((told, error))
            for told, error in refused:
                await self._refused(told, error)
        except Later as error:
            if error.after_s is not None:
                return NotNow(error.after_s)
            tries = max(signal.tries for signal in signals)
            wait = wait_before_next(tries, self._backburner.settings.delivery_retry_s)
            if tries >= _TRIES_SHOWN or wait is None:
                self._lines.to(place).block(_AWAY_S)
                return NotNow(_AWAY_S)
            self._lines.to(place).block(wait)
            raise
        return None

    async def _refused(self, signals: Sequence[Signal], error: Refused) -> None:
        """Tried again, since a bot may be let in again; given up in the end, visibly."""
        store, retry_s = self._backburner.store, self._backburner.settings.delivery_retry_s
        reason = preview(f"Refused: {error}", 300)
        for signal in signals:
            wait = wait_before_next(signal.tries, retry_s)
            if wait is None:
                await store.drop_signal(signal.key, f"{GIVEN_UP} {signal.tries} tries: {reason}")
            else:
                # Not before the others are acknowledged: it would be taken for one of them.
                retry_at = store.now() + round(max(wait, _REFUSED_S) * clock.SECOND)
                await store.delivery_failed(signal.key, reason, retry_at)

    async def _elsewhere(self, scope: Scope) -> object:
        """The session of a sub-agent: its own to read, for as long as it works."""
        assert scope.session is not None
        agent = await self._backburner.store.get(scope.session, Scope(scope.owner))
        return None if agent is None or agent.state.terminal else NotNow(_ELSEWHERE_S)

    # Letters

    async def _letters(self, scope: Scope, place: Place, signals: list[Signal]) -> list[Letter]:
        """Those that tell these signals: on their way already, or written now."""
        known: dict[str, Letter] = {}
        fresh: list[Signal] = []
        for signal in signals:
            name = self._journal.letter_telling(signal.key)
            if name is None:
                fresh.append(signal)
            elif (letter := self._journal.on_its_way(name)) is not None:
                known[name] = letter
        news = [await self._news(scope, signal) for signal in fresh]
        listed = [each for each in news if each.short is not None]
        if len(listed) <= APART_MAX:
            listed = []
        letters = [self._letter(place, each) for each in news if each not in listed]
        if listed:
            letters.append(self._list(place, listed))
        for letter in letters:
            self._journal.record(letter)
        self._remember(scope, news)
        return [*known.values(), *letters]

    def _letter(self, place: Place, news: News) -> Letter:
        key = news.signal.key
        text, files = enclosed(news.text, news.files, self._limits)
        return written(
            f"signal:{key}",
            place,
            text,
            self._limits,
            buttons=news.buttons,
            files=files,
            covers=(key,),
        )

    def _list(self, place: Place, listed: Sequence[News]) -> Letter:
        keys = tuple(each.signal.key for each in listed)
        name = hashlib.blake2b("\n".join(keys).encode(), digest_size=12).hexdigest()
        # Failures first: of a long list only the beginning is shown.
        order = sorted(listed, key=lambda each: each.signal.kind is not SignalKind.FAILED)
        lines = [each.short or "" for each in order[:LISTED_MAX]]
        if len(order) > LISTED_MAX:
            lines.append(f"and {len(order) - LISTED_MAX} more: /tasks lists them")
        text = "\n".join([f"{len(listed)} background tasks have news:", *lines])
        return written(f"list:{name}", place, text, self._limits, covers=keys)

    def _remember(self, scope: Scope, news: Sequence[News]) -> None:
        said = [Said("note", each.short or each.text, each.signal.key) for each in news[-10:]]
        if said:
            self._memory.add(scope, *said)

    # In words

    async def _news(self, scope: Scope, signal: Signal) -> News:
        assert scope.session is not None
        session = self._backburner.session(scope.session, owner=scope.owner, folder=self._folder)
        try:
            task = await session.task(signal.task)
        except NotFound:  # forgotten meanwhile
            return News(signal, signal.text, signal.text)
        if signal.kind in END_SIGNALS.values() and task.state.terminal:
            return await self._end(signal, task, session.folder)
        if signal.kind is SignalKind.INPUT_REQUIRED:
            return await self._question(signal, task)
        text = f'"{wording.titled(task.record)}" ({task.id}): {wording.safe(signal.text)}'
        return News(signal, text, preview(text, 200))

    async def _end(self, signal: Signal, task: "Task", folder: str) -> News:
        record = task.record
        is_answer = record.kind is Kind.AGENT
        printed = ""
        if not is_answer and (record.result is None or record.state is not State.SUCCEEDED):
            chunk = await task.output(last_lines=_LAST_LINES, max_chars=_PRINTED_CHARS)
            printed = "\n".join(text for text in (chunk.text, chunk.stderr_text or "") if text)
        own = self._backburner.home.attempt(record.id, record.attempt)
        await self._backburner.tasks.fetch_artifacts(record, FILES_MAX)
        files = await asyncio.to_thread(files_of, record, own, folder)
        short = None if is_answer or files else wording.line(record)
        return News(signal, wording.end(record, printed), short, files=tuple(files))

    async def _question(self, signal: Signal, task: "Task") -> News:
        name = signal.data.get("question")
        asked = next((each for each in await task.questions() if each.id == name), None)
        if asked is None:
            return News(signal, signal.text)
        text = wording.question(task.id, task.record.title, asked.text)
        return News(signal, text, buttons=wording.answer_buttons(asked))
