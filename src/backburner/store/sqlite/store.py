"""The embedded store: one SQLite file that many processes read and write."""

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from backburner.model.channels import Channel
from backburner.model.clock import Instant
from backburner.model.errors import StoreError, StoreFull, StoreUnusable
from backburner.model.events import Event
from backburner.model.home import Home
from backburner.model.messages import Message
from backburner.model.order import Queue, Wait
from backburner.model.questions import Question
from backburner.model.signals import Signal, SignalKind, SignalState
from backburner.model.states import Kind, State
from backburner.model.task import StopRequest, Task
from backburner.model.worker import Worker
from backburner.store.protocol import Scope
from backburner.store.sqlite import wal
from backburner.store.sqlite.browsing import BrowsingReads
from backburner.store.sqlite.connection import connect
from backburner.store.sqlite.filesystem import refuse_network, refused_kind
from backburner.store.sqlite.messages import MessageChanges
from backburner.store.sqlite.migrations import is_current, is_older, migrate, refuse_newer
from backburner.store.sqlite.questions import QuestionChanges
from backburner.store.sqlite.reader import Reader
from backburner.store.sqlite.runs import RunChanges
from backburner.store.sqlite.schedules import ScheduleChanges
from backburner.store.sqlite.settings import SettingChanges
from backburner.store.sqlite.signals import SignalChanges
from backburner.store.sqlite.tasks import TaskChanges
from backburner.store.sqlite.tokens import TokenChanges
from backburner.store.sqlite.wake import WakeFolder
from backburner.store.sqlite.writer import WriteLock, Writer

MakingWay = Callable[[], contextlib.AbstractContextManager[None]]

_LOOK_EVERY_S = 1.0
"""How soon a change is noticed whose writer died before it could tell; see `wake`."""


class SqliteStore(
    TaskChanges,
    RunChanges,
    SignalChanges,
    QuestionChanges,
    MessageChanges,
    ScheduleChanges,
    SettingChanges,
    TokenChanges,
    BrowsingReads,
):
    """See `backburner.store.protocol.Store` for what each method promises."""

    def __init__(self, home: Home, boot_id: str, making_way: MakingWay) -> None:
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
            current = is_current(connection)
            if not current or not wal.is_grown(home.database):
                old = not current and is_older(connection)
                with making_way() if old else contextlib.nullcontext(), self._lock.in_time():
                    migrate(connection)
                    wal.grow(home.database)
            self._read = Reader(home.database)
            opened.callback(self._read.close)
            self._wake = WakeFolder(home.wake)
            opened.pop_all()
        self._writer = Writer(
            connection,
            self._lock,
            changed=self._changed,
            wake_others=self._wake.wake_others,
            before=lambda: refuse_newer(connection),
        )
        self._socket = self._wake.listen()
        if self._socket is not None:
            self._loop.add_reader(self._socket.fileno(), self._woken)
        self._seen_version = self._read.data_version()
        self._look = self._loop.call_later(_LOOK_EVERY_S, self._look_again)
        self._closed = False

    # Waking

    def _woken(self) -> None:
        assert self._socket is not None
        self._socket.drain()
        self._read.look_at_format()
        self._changed()

    def _look_again(self) -> None:
        self._look = self._loop.call_later(_LOOK_EVERY_S, self._look_again)
        self._writer.give_up_waiting()
        version = self._read.data_version()
        if version != self._seen_version:
            self._seen_version = version
            self._read.look_at_format()
            self._changed()

    def _changed(self) -> None:
        for listener in list(self._listeners.values()):
            listener()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None

    # Reading

    @property
    def outdated(self) -> bool:
        return self._read.outdated is not None

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

    async def kept(self) -> list[Task]:
        return self._read.kept()

    async def waiting_for_keeper(self) -> list[Task]:
        return self._read.waiting_for_keeper()

    async def parked(self, scope: Scope) -> int:
        return self._read.parked(scope)

    async def workers(self) -> list[Worker]:
        return self._read.workers()

    async def tasks_of_worker(self, worker_id: str) -> list[Task]:
        return self._read.tasks_of_worker(worker_id)

    async def stops_of_worker(self, worker_id: str) -> dict[str, StopRequest]:
        return self._read.stops_of_worker(worker_id)

    async def waiting_for_application(self) -> list[Task]:
        return self._read.waiting_for_application()

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
        channel: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Signal]:
        return self._read.signals(
            scope, states=states, task=task, channel=channel, after=after, limit=limit
        )

    async def prunable(
        self, before: int, scope: Scope | None, limit: int, *, after: Task | None = None
    ) -> list[Task]:
        return self._read.prunable(before, scope, limit, after)

    async def any_active(self) -> bool:
        return self._read.any_active()

    async def waits(self) -> dict[str, Wait]:
        return self._read.waits()

    async def next_due(self) -> Instant | None:
        return self._read.next_due()

    async def questions(self, task_id: str) -> list[Question]:
        return self._read.questions(task_id)

    async def answers(self) -> list[Question]:
        return self._read.answers()

    async def messages(self) -> list[Message]:
        return self._read.messages()

    async def session_ended(self, scope: Scope) -> bool:
        return self._read.session_ended(scope)

    async def queues(self) -> list[Queue]:
        return self._read.queues()

    async def channels(self) -> list[Channel]:
        return self._read.channels()

    async def next_delivery(self, busy: Collection[str] = ()) -> int | None:
        return self._read.next_delivery(self._boot_id, busy)

    async def wished(self, scope: Scope) -> frozenset[SignalKind] | None:
        return self._read.wished(scope)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._look.cancel()
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())
        # Off the loop, so that callers who still wait for the last commit get their answers.
        ended = await asyncio.to_thread(self._writer.close)
        if self._socket is not None:
            self._socket.close()
        self._wake.close()
        self._read.close()
        if ended:
            self._lock.close()


def _make_private(path: str) -> None:
    """SQLite would make the file readable for everyone.

    One that is there is left alone: to close any descriptor of it would drop the locks that other
    connections of this process have.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def is_out_of_bounds(home: Home) -> bool:
    """Whether no patience helps: the record is of a newer format, or on a network file system."""
    if refused_kind(home.root) is not None:
        return True
    try:
        reader = Reader(home.database)
    except StoreError:
        return False
    reader.look_at_format()
    reader.close()
    return reader.outdated is not None


def open_store(
    root: Path, boot_id: str, making_way: MakingWay = contextlib.nullcontext
) -> SqliteStore:
    """The store in this home; the folder is made where it is missing.

    A record of an older format is brought up inside ``making_way``.
    """
    refuse_network(root)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return SqliteStore(Home(root), boot_id, making_way)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(
                f"no room on the disk for the record in {root}", remedy="free some space"
            ) from error
        raise StoreUnusable(
            f"the home folder {root} cannot be used: {error.strerror}",
            remedy="choose another one with --home or BACKBURNER_HOME",
        ) from error
