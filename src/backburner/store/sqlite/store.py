"""The embedded store: one SQLite file that many processes read and write."""

import asyncio
import contextlib
import errno
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.errors import Conflict, LimitReached, StoreFull, StoreUnusable
from backburner.model.events import Event, EventKind
from backburner.model.home import Home
from backburner.model.signals import Signal, SignalState
from backburner.model.states import Kind, State
from backburner.model.task import EndedFor, NewTask, Place, Progress, Task
from backburner.store.protocol import Output, Scope
from backburner.store.sqlite import wal
from backburner.store.sqlite.connection import connect
from backburner.store.sqlite.migrations import is_current, migrate
from backburner.store.sqlite.reader import Reader, within
from backburner.store.sqlite.rows import to_json, to_signal
from backburner.store.sqlite.transaction import Statements
from backburner.store.sqlite.wake import WakeFolder
from backburner.store.sqlite.writer import WriteLock, Writer

_LOOK_EVERY_S = 1.0
"""How soon a change is noticed whose writer died before it could tell; see `wake`."""


class SqliteStore:
    """See `backburner.store.protocol.Store` for what each method promises."""

    def __init__(self, home: Home, boot_id: str) -> None:
        """Opens the record, and brings it to the newest shape. `open_store` is the way in."""
        self._home = home
        self._boot_id = boot_id
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[object, Callable[[], None]] = {}
        with contextlib.ExitStack() as opened:  # where one step fails, the others are undone
            self._lock = WriteLock(home.write_lock)
            opened.callback(self._lock.close)
            _make_private(home.database)
            connection = connect(home.database)
            opened.callback(connection.close)
            if not is_current(connection) or not wal.is_grown(home.database):
                with self._lock:
                    migrate(connection)
                    wal.grow(home.database)
            self._read = Reader(home.database)
            opened.callback(self._read.close)
            self._wake = WakeFolder(home.wake)
            opened.pop_all()
        self._writer = Writer(connection, self._lock, self._committed)
        self._socket = self._wake.listen()
        if self._socket is not None:
            self._loop.add_reader(self._socket.fileno(), self._woken)
        self._seen_version = self._read.data_version()
        self._look = self._loop.call_later(_LOOK_EVERY_S, self._look_again)
        self._notified = False
        self._closed = False

    # Waking

    def _committed(self) -> None:
        """In the writer's thread, after each commit."""
        self._wake.wake_others()
        if self._listeners and not self._notified:
            self._notified = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
                self._loop.call_soon_threadsafe(self._changed)

    def _woken(self) -> None:
        assert self._socket is not None
        self._socket.drain()
        self._changed()

    def _look_again(self) -> None:
        self._look = self._loop.call_later(_LOOK_EVERY_S, self._look_again)
        version = self._read.data_version()
        if version != self._seen_version:
            self._seen_version = version
            self._changed()

    def _changed(self) -> None:
        self._notified = False
        for listener in list(self._listeners.values()):
            listener()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None

    # Reading

    async def get(self, task_id: str, scope: Scope | None = None) -> Task | None:
        return self._read.get(task_id, scope)

    async def find(self, prefix: str, scope: Scope, limit: int) -> list[Task]:
        return self._read.find(prefix, scope, limit)

    async def newest(
        self,
        scope: Scope,
        *,
        limit: int,
        states: Sequence[State] = (),
        before: int | None = None,
    ) -> list[Task]:
        return self._read.newest(scope, limit=limit, states=states, before=before)

    async def active(self, kind: Kind | None = None) -> list[Task]:
        return self._read.active(kind)

    async def waiting_for_worker(self, kind: Kind) -> list[Task]:
        return self._read.waiting_for_worker(kind)

    async def events(self, task_id: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        return self._read.events(task_id, after=after, limit=limit)

    async def events_since(self, seq: int, *, limit: int = 1000) -> list[Event]:
        return self._read.events_since(seq, limit=limit)

    async def last_event(self) -> int:
        return self._read.last_event()

    async def signals(
        self,
        scope: Scope,
        *,
        states: Sequence[SignalState] = (),
        task: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Signal]:
        return self._read.signals(scope, states=states, task=task, after=after, limit=limit)

    async def prunable(self, before: int, scope: Scope | None, limit: int) -> list[Task]:
        return self._read.prunable(before, scope, limit)

    # Tasks

    async def create(self, task: NewTask, *, limit: int, ending: Ending | None = None) -> Task:
        spec = to_json(task.spec)

        def operation(run: Statements) -> Task:
            created = run.task(
                "task_insert",
                id=task.id,
                owner=task.owner,
                session=task.session,
                kind=task.kind,
                title=task.title,
                spec=spec,
                now=clock.now(),
                max_runtime_s=task.max_runtime_s,
                parent=task.parent,
                schedule=task.schedule,
                hand_over=task.hand_over,
            )
            if created is None:
                existing = run.task("task_get", id=task.id)
                assert existing is not None
                return _same_or_conflict(existing, task, spec)
            run.add_event(created, EventKind.CREATED, {})
            if ending is None:
                _refuse_above(limit, run, task)  # which undoes the insert
                return created
            ended = run.finish(task.id, created.attempt, ending)
            if ended is None:
                raise ValueError(f"a task that never ran cannot end as {ending.state}")
            return ended

        return await self._writer.write(operation)

    async def claim(self, task_id: str, attempt: int, place: Place) -> Task | None:
        return await self._change(
            "task_claim",
            EventKind.STARTED,
            {"attempt": attempt},
            id=task_id,
            attempt=attempt,
            now=clock.now(),
            boot_id=place.boot_id,
            started_boot=place.started_boot,
            pid=place.pid,
            cgroup=place.cgroup,
        )

    async def requeue(self, task_id: str, attempt: int, reason: str) -> Task | None:
        def operation(run: Statements) -> Task | None:
            task = run.task("task_requeue", id=task_id, attempt=attempt)
            if task is None:
                return None
            data = {"attempt": task.attempt, "reason": reason}
            run.add_event(task, EventKind.REQUEUED, data)
            if task.stop is not None:  # someone asked for its end: it is not tried again
                return run.finish(task_id, task.attempt, Ending.canceled())
            return task

        return await self._writer.write(operation)

    async def finish(
        self,
        task_id: str,
        attempt: int,
        ending: Ending,
        *,
        output: Output | None = None,
        leftovers: int = 0,
    ) -> Task | None:
        return await self._writer.write(
            lambda run: run.finish(task_id, attempt, ending, output=output, leftovers=leftovers)
        )

    async def request_stop(self, task_id: str, scope: Scope, grace_s: float) -> Task | None:
        def operation(run: Statements) -> Task | None:
            task = run.task("task_get", id=task_id)
            if task is None or not within(task, scope):
                return None
            if task.state is State.QUEUED:
                return run.finish(task_id, task.attempt, Ending.canceled())
            if task.stop is not None and task.stop.grace_s <= grace_s:
                return task  # asked before, and at least as urgently
            asked = run.task("task_request_stop", id=task_id, now=clock.now(), grace_s=grace_s)
            if asked is None:
                return task
            run.add_event(asked, EventKind.STOP_REQUESTED, {"grace_s": grace_s})
            return run.task("task_get", id=task_id)

        return await self._writer.write(operation)

    async def begin_ending(self, task_id: str, attempt: int, reason: EndedFor) -> bool:
        begun = await self._change(
            "task_begin_ending",
            EventKind.ENDING,
            {"reason": reason.value},
            id=task_id,
            attempt=attempt,
            reason=reason,
        )
        return begun is not None

    async def note(
        self,
        task_id: str,
        attempt: int,
        kind: EventKind,
        *,
        detail: str | None = None,
        progress: Progress | None = None,
        leftovers: int | None = None,
        output: Output | None = None,
    ) -> bool:
        shown = None if progress is None else asdict(progress)
        facts = {"detail": detail, "progress": shown, "leftovers": leftovers}
        noted = await self._change(
            "task_note",
            kind,
            {name: value for name, value in facts.items() if value is not None},
            id=task_id,
            attempt=attempt,
            detail=detail,
            progress=None if shown is None else to_json(shown),
            leftovers=leftovers,
            output_bytes=output.total if output else None,
            dropped_bytes=output.dropped if output else None,
        )
        return noted is not None

    async def _change(
        self, name: str, kind: EventKind, data: dict[str, Any], /, **values: Any
    ) -> Task | None:
        """A guarded statement on one task, and the event that tells of it."""

        def operation(run: Statements) -> Task | None:
            task = run.task(name, **values)
            if task is not None:
                run.add_event(task, kind, data)
            return task

        return await self._writer.write(operation)

    # Signals

    async def claim_signals(
        self, scope: Scope, *, consumer: str, limit: int, lease_s: float
    ) -> list[Signal]:
        def operation(run: Statements) -> list[Signal]:
            boot_now = clock.boot_now()
            free = run.rows(
                "signals_free_of_owner" if scope.session is None else "signals_free_in_session",
                owner=scope.owner,
                session=scope.session,
                limit=limit,
                boot=self._boot_id,
                boot_now=boot_now,
            )
            rows = run.rows(
                "signals_claim",
                seqs=to_json([seq for (seq,) in free]),
                consumer=consumer,
                boot=self._boot_id,
                lease_until=boot_now + round(lease_s * clock.SECOND),
            )
            return sorted((to_signal(row) for row in rows), key=lambda signal: signal.seq)

        return await self._writer.write(operation)

    async def acknowledge(self, keys: Sequence[str], scope: Scope) -> int:
        return await self._count(
            "signals_acknowledge",
            keys=to_json(keys),
            owner=scope.owner,
            session=scope.session,
            now=clock.now(),
        )

    async def release_signals(self, consumer: str) -> int:
        return await self._count("signals_release", consumer=consumer)

    async def delivery_failed(self, key: str, reason: str, retry_at: int) -> bool:
        wait = max(0, retry_at - clock.now())
        failed = await self._count(
            "signal_failed",
            key=key,
            reason=reason,
            retry_at=retry_at,
            boot=self._boot_id,
            lease_until=clock.boot_now() + wait,
        )
        return bool(failed)

    async def drop_signal(self, key: str, reason: str) -> bool:
        return bool(await self._count("signal_drop", key=key, reason=reason))

    async def forget(self, task_ids: Sequence[str]) -> int:
        return await self._count("task_forget", ids=to_json(task_ids))

    async def _count(self, name: str, /, **values: Any) -> int:
        """How many rows a statement has changed."""
        return await self._writer.write(lambda run: len(run.rows(name, **values)))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._look.cancel()
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())
        # Off the loop, so that callers who still wait for the last commit get their answers.
        await asyncio.to_thread(self._writer.close)
        if self._socket is not None:
            self._socket.close()
        self._wake.close()
        self._read.close()
        self._lock.close()


def _make_private(path: str) -> None:
    """SQLite would make the file readable for everyone.

    One that is there is left alone: to close any descriptor of it would drop the locks that other
    connections of this process have.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def open_store(root: Path, boot_id: str) -> SqliteStore:
    """The store in this home; the folder is made where it is missing."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return SqliteStore(Home(root), boot_id)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(
                f"no room on the disk for the record in {root}", remedy="free some space"
            ) from error
        raise StoreUnusable(
            f"the home folder {root} cannot be used: {error.strerror}",
            remedy="choose another one with --home or BACKBURNER_HOME",
        ) from error


def _refuse_above(limit: int, run: Statements, task: NewTask) -> None:
    row = run.row("task_count_active", owner=task.owner, session=task.session, kind=task.kind)
    others = row[0] - 1 if row else 0
    if others >= limit:
        raise LimitReached(
            f"session {task.session!r} has {others} active {task.kind} tasks, "
            f"and {limit} is the limit",
            remedy="wait for one to end, or stop one",
        )


def _same_or_conflict(existing: Task, wanted: NewTask, spec: str) -> Task:
    same_place = (existing.owner, existing.session) == (wanted.owner, wanted.session)
    # As JSON, which has no tuples and only texts for keys.
    if same_place and (existing.kind, existing.spec) == (wanted.kind, json.loads(spec)):
        return existing
    raise Conflict(
        f"the id {wanted.id!r} cannot be used for this task",
        remedy="choose another id, or leave it out",
    )
