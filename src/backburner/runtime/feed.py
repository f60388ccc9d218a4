"""Waiting without polling: one that hears of new events for a process, many that wait for them."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Collection, Generator
from typing import Literal

from backburner.model.errors import BackburnerError, StoreError
from backburner.model.events import EventKind
from backburner.runtime.outages import endured
from backburner.store.news import News, Subject
from backburner.store.protocol import Store


class Bell(asyncio.Event):
    """Rings when there may be news. After the end of its feed, to wait for it is an error."""

    _silent = False

    def __init__(self, kinds: Collection[EventKind] | None = None) -> None:
        super().__init__()
        self.kinds = kinds
        """What it rings for; None for everything."""

    def silence(self) -> None:
        """There will be no more news."""
        self._silent = True
        self.set()

    async def wait(self) -> Literal[True]:
        """Wait for news."""
        await super().wait()
        if self._silent:
            raise StoreError("the home was closed while something waited for a change in it")
        return True

    def clear(self) -> None:
        """Wait for the next news, not for these."""
        if not self._silent:
            super().clear()


class Feed:
    """Wakes those that wait for a task, or for something to be told.

    Where the store does not say what happened, the events are read.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_task: dict[str, set[Bell]] = {}
        self._inbox: set[Bell] = set()
        self._seen = 0
        self._reading = False
        self._again = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsubscribe = store.on_news(self._heard)

    @contextlib.asynccontextmanager
    async def of_task(
        self, task_id: str, kinds: Collection[EventKind] | None = None
    ) -> AsyncGenerator[Bell]:
        """An event that is set whenever something happens to this task, or something of these

        kinds. Clear it, then look.
        """
        if not self._by_task and not self._store.tells:
            last = await endured(self._store.last_event)
            if not self._by_task:  # else somebody came meanwhile, whose news may be older
                self._seen = last
        bell = Bell(kinds)
        self._by_task.setdefault(task_id, set()).add(bell)
        try:
            yield bell
        finally:
            bells = self._by_task[task_id]
            bells.discard(bell)
            if not bells:
                del self._by_task[task_id]

    @contextlib.contextmanager
    def of_signals(self) -> Generator[Bell]:
        """An event that is set whenever a session may have something to be told."""
        bell = Bell()
        self._inbox.add(bell)
        try:
            yield bell
        finally:
            self._inbox.discard(bell)

    def close(self) -> None:
        """Stop listening; those who wait are woken, and told."""
        self._unsubscribe()
        for bell in (*self._inbox, *itertools.chain(*self._by_task.values())):
            bell.silence()

    def _heard(self, news: News | None) -> None:
        if news is None or Subject.INBOX in news.about:
            for bell in self._inbox:
                bell.set()
        if not self._by_task:
            return
        if news is not None:
            for task, kind in news.events:
                self._ring(task, kind)
        elif self._store.tells:  # some of it was missed
            self._ring_all()
        else:
            self._read()

    def _ring(self, task: str, kind: EventKind) -> None:
        for bell in self._by_task.get(task, ()):
            if bell.kinds is None or kind in bell.kinds:
                bell.set()

    def _ring_all(self) -> None:
        for bell in itertools.chain(*self._by_task.values()):
            bell.set()

    def _read(self) -> None:
        if self._reading:
            self._again = True
            return
        self._reading = True
        reading = asyncio.get_running_loop().create_task(self._read_events())
        self._tasks.add(reading)
        reading.add_done_callback(self._tasks.discard)

    async def _read_events(self) -> None:
        try:
            while True:
                self._again = False
                events = await endured(lambda: self._store.events_since(self._seen))
                for event in events:
                    self._seen = event.seq
                    self._ring(event.task, event.kind)
                if not events and not self._again:
                    return
        except BackburnerError:
            self._ring_all()  # let them look, and hear the error themselves
        finally:
            self._reading = False
