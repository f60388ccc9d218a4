"""A quick look at the record, for a program that asks once and ends.

Reads through a connection of its own and needs no event loop: loading one would take longer than
the answer. What is seldom needed (a migration, a keeper to be called) is imported when it is.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Self

from backburner.model.errors import StoreUnusable
from backburner.model.home import Home
from backburner.model.signals import INBOX, SignalState
from backburner.model.states import ACTIVE, State
from backburner.model.task import Task
from backburner.store.protocol import Scope
from backburner.store.record import reading
from backburner.store.record.reading import within
from backburner.store.sqlite.filesystem import refuse_network
from backburner.store.sqlite.reader import Reader

_PAGE = 500
"""Tasks that are in memory at a time when all of them are asked for."""


class Glance:
    """The tasks of one home as they are now. A home without a record has none, and gets none."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._reader = _open_reader(home)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.close()

    def recent(
        self, scope: Scope, *, states: Sequence[State] = (), limit: int
    ) -> tuple[list[Task], bool]:
        """Every active task and the newest ``limit``, newest first; whether older ones exist."""
        if self._reader is None:
            return [], False
        found = {
            task.seq: task
            for task in self._reader.active()
            if within(task, scope) and (not states or task.state in states)
        }
        more = False
        if not states or not set(states) <= set(ACTIVE):
            newest = self._reader.newest(scope, limit=limit + 1, states=states)
            more = len(newest) > limit
            found |= {task.seq: task for task in newest[:limit]}
        return [found[seq] for seq in sorted(found, reverse=True)], more

    def everything(self, scope: Scope, *, states: Sequence[State] = ()) -> Iterator[list[Task]]:
        """All tasks, newest first, a page at a time."""
        before: int | None = None
        while self._reader is not None:
            page = self._reader.newest(scope, limit=_PAGE, states=states, before=before)
            if page:
                yield page
            if len(page) < _PAGE:
                return
            before = page[-1].seq

    def active_count(self) -> int:
        """How many tasks of this home, whoever's they are, somebody has to look after."""
        return len(self._reader.active()) if self._reader is not None else 0

    def dead_letters(self, scope: Scope) -> int:
        """How many signals of this caller no channel could deliver, up to a thousand."""
        if self._reader is None:
            return 0
        dropped = self._reader.signals(
            scope, states=[SignalState.DROPPED], task=None, channel=None, after=0, limit=1000
        )
        return sum(signal.channel != INBOX and signal.tries > 0 for signal in dropped)

    def see_to_keeper(self) -> None:
        """Call a keeper where there is work for one: after a reboot nobody else would."""
        if self._reader is not None and self._reader.any_active():
            from backburner.runtime.election import call_keeper

            call_keeper(self.home)


def reader_if_current(home: Home) -> reading.Reader | None:
    """A reader where the record is there and needs no migration."""
    if not home.shared:
        return Reader.if_current(home.database)
    from backburner.store.postgres.reader import reader_if_current as of_database

    return of_database(home.address)


def _open_reader(home: Home) -> reading.Reader | None:
    if home.shared:
        return _reader_of_database(home)
    try:
        os.stat(home.database)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnusable(
            f"the home folder {home.root} cannot be used: {error.strerror}",
            remedy="choose another one with --home or BACKBURNER_HOME",
        ) from error
    refuse_network(home.root)
    reader = Reader.if_current(home.database)
    if reader is None:
        bring_up_to_date(home)
        reader = Reader(home.database)
    return reader


def _reader_of_database(home: Home) -> reading.Reader:
    from backburner.runtime.home import check_database_installed

    check_database_installed()
    from backburner.store.postgres.reader import open_reader

    return open_reader(home.address)


def bring_up_to_date(home: Home) -> None:
    """Opening the store for writing is what applies migrations."""
    import asyncio

    from backburner.runtime.succession import making_way
    from backburner.store.sqlite.store import open_store
    from backburner.work.process.identity import boot_id

    async def open_and_close() -> None:
        await open_store(home.root, boot_id(), lambda: making_way(home)).close()

    asyncio.run(open_and_close())
