"""Looking for tasks among many: filters that the record has no index for, a bounded look at a time.

The record is read in pages, newest first, and other work gets its turn between them.
"""

import asyncio
from collections.abc import Collection, Sequence

from backburner.model.states import Kind, State
from backburner.model.task import Task
from backburner.model.values import value
from backburner.store.protocol import Scope, Store

_PAGE = 200
_LOOKED_AT = 5000
"""Tasks that one call looks at; whoever wants more goes on from there."""


@value
class Filter:
    """What is looked for; everything unless told."""

    states: Sequence[State] = ()
    kinds: Collection[Kind] = ()
    text: str = ""
    """In the title, the id or the name of the session, in any case."""

    def fits(self, task: Task) -> bool:
        """Whether this is one of them; the states are the record's to look at."""
        if self.kinds and task.kind not in self.kinds:
            return False
        wanted = self.text.casefold()
        return not wanted or any(
            wanted in said.casefold() for said in (task.title, task.id, task.session)
        )


@value
class Page:
    """Tasks, newest first."""

    tasks: list[Task]
    next: int | None
    """Where to go on; None where nothing follows."""


async def browse(
    store: Store, scope: Scope, wanted: Filter, *, limit: int, before: int | None = None
) -> Page:
    """Up to ``limit`` tasks that fit. A page may have fewer, and others may follow all the same."""
    found: list[Task] = []
    looked_at = 0
    while looked_at < _LOOKED_AT:
        page = await store.newest(scope, limit=_PAGE, states=wanted.states, before=before)
        for task in page:
            before = task.seq
            if wanted.fits(task):
                found.append(task)
                if len(found) == limit:
                    more = bool(
                        await store.newest(scope, limit=1, states=wanted.states, before=before)
                    )
                    return Page(found, before if more else None)
        if len(page) < _PAGE:
            return Page(found, None)
        looked_at += len(page)
        await asyncio.sleep(0)
    return Page(found, before)
