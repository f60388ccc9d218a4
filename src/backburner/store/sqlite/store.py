"""The embedded store: one SQLite file that many processes read and write."""

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from backburner.model.errors import StoreError, StoreFull, StoreUnusable
from backburner.model.home import Home
from backburner.store.protocol import Scope
from backburner.store.record import reading
from backburner.store.record.leases import BootClock
from backburner.store.record.record import Record
from backburner.store.sqlite import wal
from backburner.store.sqlite.connection import connect
from backburner.store.sqlite.filesystem import refuse_network, refused_kind
from backburner.store.sqlite.migrations import is_current, is_older, migrate, refuse_newer
from backburner.store.sqlite.reader import Reader
from backburner.store.sqlite.wake import WakeFolder
from backburner.store.sqlite.writer import WriteLock, Writer

Result = TypeVar("Result")

MakingWay = Callable[[], contextlib.AbstractContextManager[None]]

_LOOK_EVERY_S = 1.0
"""How soon a change is noticed whose writer died before it could tell; see `wake`."""


class SqliteStore(Record):
    """See `backburner.store.protocol.Store` for what each method promises."""

    def __init__(self, home: Home, boot_id: str, making_way: MakingWay) -> None:
        """Opens the record, and brings it to the newest shape. `open_store` is the way in."""
        self._home = home
        self._leases = BootClock(boot_id)
        self._loop = asyncio.get_running_loop()
        super().__init__()
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
            self._read = Reader(home.database, boot_id)
            opened.callback(self._read.close)
            self._wake = WakeFolder(home.wake)
            opened.pop_all()
        self._writer = self._commits = Writer(
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
        self._next_look = self._loop.call_later(_LOOK_EVERY_S, self._look_again)
        self._closed = False

    # Waking

    def _woken(self) -> None:
        assert self._socket is not None
        self._socket.drain()
        self._read.look_at_format()
        self._changed()

    def _look_again(self) -> None:
        self._next_look = self._loop.call_later(_LOOK_EVERY_S, self._look_again)
        self._commits.give_up_waiting()
        version = self._read.data_version()
        if version != self._seen_version:
            self._seen_version = version
            self._read.look_at_format()
            self._changed()

    @property
    def tells(self) -> bool:
        return False  # a datagram says only that something has

    # Reading

    @property
    def outdated(self) -> bool:
        return self._read.outdated is not None

    async def _look(
        self,
        read: Callable[[reading.Reader], Result],
        scope: Scope | None = None,  # noqa: ARG002 - whoever can read the file can read all of it
    ) -> Result:
        return read(self._read)

    async def secret(self, name: str) -> str | None:  # noqa: ARG002 - there is none
        return None

    async def forget_secrets(self, names: Collection[str]) -> int:  # noqa: ARG002 - there is none
        return 0

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._next_look.cancel()
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())
        # Off the loop, so that callers who still wait for the last commit get their answers.
        ended = await asyncio.to_thread(self._commits.close)
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
