"""Events for many readers: the record is read once for a change, and each event is encoded once.

A reader has a short queue of bytes that it shares with the others. Whoever falls so far behind that
it is full is dropped, and told so; everything can be read again from the rows.
"""

import asyncio
import json
import logging
from collections import Counter, deque
from collections.abc import Sequence
from http import HTTPStatus

from fastapi.sse import format_sse_event

from backburner.model.clock import rfc3339
from backburner.model.errors import BackburnerError
from backburner.model.events import Event, EventKind
from backburner.model.task import Task
from backburner.serve.measures import Measures
from backburner.serve.problems import Refused
from backburner.serve.settings import Load
from backburner.store.protocol import Scope, Store

_log = logging.getLogger("backburner.serve")

_PAGE = 500
_AGAIN_S = 1.0
"""How soon the record is read again that could not be read."""


class Reader:
    """Somebody who reads along: the events of one task, or all within a scope."""

    def __init__(self, scope: Scope, task: str | None, holder: str, position: int) -> None:
        self.scope = scope
        self.task = task
        self.holder = holder
        """The token that it came with."""
        self.position = position
        """Up to this event it has to read the rows itself; those after it come by themselves."""
        self.waiting: deque[bytes] = deque()
        self.aside = b""
        """The latest of what is no event, and of which only the latest counts."""
        self.bell = asyncio.Event()
        self.finished = False
        """The end of its task is among what it was given."""
        self.ended: str | None = None
        """Why nothing comes any more."""

    def end(self, reason: str) -> None:
        """Nothing comes any more."""
        self.ended = self.ended or reason
        self.bell.set()

    def put_aside(self, data: bytes) -> None:
        """In the place of what was put there before, if that was not taken yet."""
        self.aside = data
        self.bell.set()

    def take(self) -> bytes:
        """All that has come."""
        taken = b"".join([*self.waiting, self.aside])
        self.waiting.clear()
        self.aside = b""
        self.bell.clear()
        return taken


class Hub:
    """Reads new events for everybody."""

    def __init__(self, store: Store, load: Load, measures: Measures) -> None:
        self._store = store
        self._load = load
        self._measures = measures
        self._seen = 0
        self._by_task: dict[str, set[Reader]] = {}
        self._wide: set[Reader] = set()
        self._held: Counter[str] = Counter()
        """Readers by the tokens that they came with."""
        self._closed = False
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until it is cancelled."""
        unsubscribe = self._store.on_change(self._changed.set)
        try:
            while True:
                try:
                    await self._catch_up()
                    await self._changed.wait()
                except BackburnerError as error:
                    _log.warning("events cannot be read: %s", error)
                    await asyncio.sleep(_AGAIN_S)
        finally:
            unsubscribe()

    async def start(self) -> None:
        """From now on."""
        self._seen = await self._store.last_event()

    def __len__(self) -> int:
        return self._held.total()

    def join(self, scope: Scope, task: str | None, holder: str) -> Reader:
        """One more reader; 503 where there are too many."""
        held = self._held[holder]
        if self._held.total() >= self._load.streams or held >= self._load.streams_per_token:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too_many_readers",
                "as many read events already as this server takes on",
                remedy="close some; one stream at /v1/events tells of every task",
                headers={"Retry-After": "10"},
            )
        reader = Reader(scope, task, holder, self._seen)
        self._held[holder] += 1
        if task is None:
            self._wide.add(reader)
        else:
            self._by_task.setdefault(task, set()).add(reader)
        self._measures.streams.inc()
        if self._closed:
            reader.end("shutdown")
        return reader

    def leave(self, reader: Reader) -> None:
        """It has gone."""
        self._measures.streams.dec()
        self._held[reader.holder] -= 1
        if not self._held[reader.holder]:
            del self._held[reader.holder]
        if reader.task is None:
            self._wide.discard(reader)
            return
        readers = self._by_task.get(reader.task, set())
        readers.discard(reader)
        if not readers:
            self._by_task.pop(reader.task, None)

    def close(self) -> None:
        """The server ends: so does every stream, in order."""
        self._closed = True
        for reader in [*self._wide, *(each for some in self._by_task.values() for each in some)]:
            reader.end("shutdown")

    async def _catch_up(self) -> None:
        while True:
            self._changed.clear()
            events = await self._store.events_since(self._seen, limit=_PAGE)
            if not events:
                return
            for event in events:
                self._measures.events.labels(event.kind.value).inc()
            pieces = await self.encoded(events) if len(self) else []
            # Together, without a wait: who joins is before all of these events, or after them.
            for event, task, data in pieces:
                self._tell(event, task, data)
            self._seen = events[-1].seq

    async def encoded(self, events: Sequence[Event]) -> list[tuple[Event, Task, bytes]]:
        """Events with their tasks, as they go over the wire; not those of forgotten tasks."""
        tasks: dict[str, Task | None] = {}
        for event in events:
            if event.task not in tasks:
                tasks[event.task] = await self._store.get(event.task)
        return [
            (event, task, encode(event, task))
            for event in events
            if (task := tasks[event.task]) is not None
        ]

    def _tell(self, event: Event, task: Task, data: bytes) -> None:
        for reader in self._by_task.get(task.id, ()):
            self._give(reader, event, data)
        for reader in self._wide:
            if sees(reader.scope, task):
                self._give(reader, event, data)

    def _give(self, reader: Reader, event: Event, data: bytes) -> None:
        if reader.ended is not None or event.seq <= reader.position:
            return
        if len(reader.waiting) >= self._load.event_backlog:
            self._measures.dropped.inc()
            reader.waiting.clear()
            reader.end("slow")
            return
        reader.finished = reader.finished or event.kind is EventKind.FINISHED
        reader.waiting.append(data)
        reader.bell.set()


def sees(scope: Scope, task: Task) -> bool:
    """Whether the task exists for this reader."""
    return task.owner == scope.owner and scope.session in (None, task.session)


def encode(event: Event, task: Task) -> bytes:
    """One event on the wire."""
    data = {
        "task": task.id,
        "session": task.session,
        "kind": event.kind.value,
        "at": rfc3339(event.at),
        "data": event.data,
        "state": task.state.value,
    }
    return format_sse_event(data_str=json.dumps(data), event=event.kind.value, id=str(event.seq))
