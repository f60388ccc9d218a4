"""Which tasks `top` shows: out of the record, by session, state and search.

Bounded: every active task and the newest ones, up to a limit each; a search looks further back.
"""

import asyncio
from collections import Counter

from backburner.app import Backburner, Session
from backburner.model.states import ACTIVE, State
from backburner.model.task import Task
from backburner.model.values import value
from backburner.store.protocol import Scope
from backburner.work.shown import shown_work

NEWEST = 200
"""So many are shown, however many there are."""
_PAGE = 500
_SEARCHED = 100_000
"""A search looks back so far."""


@value
class Choice:
    """What the person wants to see."""

    session: str | None
    """None for every session."""
    active_only: bool = False
    search: str = ""

    def takes(self, task: Task) -> bool:
        """Whether it is to be shown."""
        return (not self.active_only or is_active(task)) and self.finds(task)

    def finds(self, task: Task) -> bool:
        """Whether every word of the search is in its id, title or command; or in its session,

        where there are several.
        """
        if not self.search:
            return True
        session = task.session if self.session is None else ""
        text = f"{task.id}\n{task.title}\n{shown_work(task.spec)}\n{session}".casefold()
        return all(word in text for word in self.search.casefold().split())


def is_active(task: Task) -> bool:
    """Whether something of it may run."""
    return not task.state.terminal or task.leftovers > 0


class Roster:
    """The tasks that are chosen, newest first, as of the last look."""

    def __init__(self, backburner: Backburner, session: Session, choice: Choice) -> None:
        self._backburner = backburner
        self._owner = session.scope.owner
        self._choice = choice
        self._found: dict[int, Task] = {}
        """What a search has found among older tasks."""
        self.tasks: list[Task] = []
        self.counts: Counter[State] = Counter()
        """Of the active ones, before the search; at most the limit."""
        self.more = False
        """Whether there are older ones that are not shown."""

    @property
    def choice(self) -> Choice:
        """What is chosen now."""
        return self._choice

    @choice.setter
    def choice(self, choice: Choice) -> None:
        self._choice = choice
        self._found.clear()

    @property
    def _scope(self) -> Scope:
        return Scope(self._owner, self._choice.session)

    async def look(self, *, keep: str | None) -> None:
        """Read the record again. ``keep`` stays in the list as long as it exists."""
        # One choice for the whole look: the person may make another in the middle of it.
        store, scope, choice = self._backburner.store, self._scope, self._choice
        active = await store.newest(scope, limit=NEWEST, states=ACTIVE)
        self.counts = Counter(task.state for task in active)
        newest = await store.newest(scope, limit=NEWEST + 1)
        self.more = len(newest) > NEWEST
        found = {task.seq: task for task in (*active, *newest[:NEWEST])}
        if choice.search:
            found = {seq: task for seq, task in found.items() if choice.finds(task)}
            if choice is self._choice:
                # What matched once stays, also when newer tasks push it out of the newest.
                self._found |= found
                found = self._found
        chosen = {seq: task for seq, task in found.items() if choice.takes(task)}
        if keep is not None and all(task.id != keep for task in chosen.values()):
            kept = await store.get(keep, scope)
            if kept is not None:
                chosen[kept.seq] = kept
        self.tasks = [chosen[seq] for seq in sorted(chosen, reverse=True)]

    async def search_further(self) -> None:
        """Look through older tasks for what the search asks; in steps, so that keys are heard."""
        choice, scope = self._choice, self._scope
        before: int | None = None
        for _ in range(_SEARCHED // _PAGE):
            page = await self._backburner.store.newest(scope, limit=_PAGE, before=before)
            if choice != self._choice:
                return
            self._found |= {task.seq: task for task in page if choice.finds(task)}
            if len(page) < _PAGE or len(self._found) >= NEWEST:
                return
            before = page[-1].seq
            await asyncio.sleep(0)
