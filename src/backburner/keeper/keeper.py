"""The keeper: the one process of a home that carries out, watches and ends shell tasks.

Elected by a record lock, so two can never act at once. Leaves when it has had nothing to do for a
while (unless it is to stay), when its home is gone, or when a newer one asks it to. Its guardian
starts it again when it dies.
"""

import asyncio
import contextlib
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from backburner.keeper.guardian import GOODBYE, STAY, STAYING
from backburner.model import clock
from backburner.model.errors import BackburnerError, KeeperUnreachable, StoreUnusable
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.runtime.children import stop_left_children
from backburner.runtime.delivery import Deliverer
from backburner.runtime.election import KeeperLock, start_detached
from backburner.runtime.retention import prune_now_and_then
from backburner.runtime.runs.recovery import recover
from backburner.runtime.schedules.clockwork import Clockwork
from backburner.runtime.succession import take_office
from backburner.runtime.worker import ProcessWorker
from backburner.store.protocol import Store
from backburner.store.sqlite.reader import Reader
from backburner.store.sqlite.store import is_out_of_bounds, open_store
from backburner.work.process.identity import boot_id

_RECOVER_EVERY_S = 1.0
_LOG_LIMIT = 1024 * 1024
"""The keeper's own log begins anew above this size."""

_OPEN_AGAIN_S = 1.0


class Keeper:
    """Acts for a home. An application, or a test, may also run one inside itself."""

    def __init__(
        self, home: Home, store: Store, settings: Settings, *, stays: bool = False
    ) -> None:
        self._home = home
        self._stays = stays
        self._store = store
        self._settings = settings
        self._worker = ProcessWorker(store, home, settings, report)
        self._deliverer = Deliverer(store, home, settings, report)
        self._clockwork = Clockwork(store, home, settings, report)
        self._leaving = self._told_to_leave = False
        self._quiet_since = time.monotonic()
        self._recovered = -_RECOVER_EVERY_S
        self._database = _identity(home.database)

    def leave(self) -> None:
        """Leave at once, and let the jobs go on."""
        self._leaving = self._told_to_leave = True
        self._worker.look_again()

    async def run(self) -> bool:
        """Act until there is nothing to do for a while, the home is gone, or `leave`.

        Answers whether it was told to leave.
        """
        delivering = asyncio.create_task(self._deliverer.run())
        ticking = asyncio.create_task(self._clockwork.run())
        beside = [delivering, ticking]
        try:
            await self._worker.adopt()
            pruning = prune_now_and_then(self._store, self._home, self._settings, report)
            beside.append(asyncio.create_task(pruning))
            await stop_left_children(self._store, self._home)
            while not self._leaving:
                await self._look()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)
            await self._deliverer.close()
            await self._clockwork.close()
            await self._worker.close()
        return self._told_to_leave

    async def _look(self) -> None:
        try:
            await self._recover_now_and_then()
            await self._worker.work()
        except Exception as error:  # noqa: BLE001 - jobs depend on us: look again, whatever it was
            if not self._home_is_gone() and not self._store.outdated:
                report(f"will look again: {type(error).__name__}: {error}")
                await asyncio.sleep(_OPEN_AGAIN_S)
        if self._home_is_gone():
            report("the home folder is gone: ending its jobs and leaving")
            await self._worker.end_everything()
            self._leaving = True
        elif self._store.outdated:
            report("a newer Backburner has changed the record: leaving the jobs to its keeper")
            self.leave()
        elif self._stays or not (self._worker.idle and self._deliverer.idle):
            self._quiet_since = time.monotonic()
        elif time.monotonic() - self._quiet_since > self._settings.keeper_idle_s:
            self._leaving = True

    async def _recover_now_and_then(self) -> None:
        """Applications die without a word: their locks are looked at once in a while."""
        if time.monotonic() - self._recovered >= _RECOVER_EVERY_S:
            self._recovered = time.monotonic()
            await recover(self._store, self._home, report)

    def _home_is_gone(self) -> bool:
        # By identity: a home may be deleted and made anew between two looks.
        try:
            identity = _identity(self._home.database)
        except OSError:
            return False  # the disk does not answer: no reason to end what runs
        return identity is None or identity != self._database


def _identity(path: str) -> tuple[int, int] | None:
    """What tells a file from another of its name, None without one; OSError if that is unclear.

    No other file has the same while this one is open.
    """
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def report(text: str) -> None:
    """A line for the keeper's log; lost where the disk is full, which is what most of them say."""
    line = f"{clock.rfc3339(clock.now())} [{os.getpid()}] {text}"
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)  # noqa: T201


async def run(root: Path, line_fd: int | None, *, stays: bool = False) -> None:
    """The life of a keeper process. ``line_fd`` is its line to the guardian."""
    home = Home(root)
    line = socket.socket(fileno=line_fd) if line_fd is not None else None
    if line is not None:
        line.set_inheritable(False)
    told = asyncio.Event()  # from the start: else it would die, and its guardian start it again
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])  # its guardian has blocked it

    def will_stay() -> None:
        if line is not None:
            with contextlib.suppress(OSError):  # no guardian: the next one is told
                line.send(STAYING)

    lock = _take_office(home, stays=stays, will_stay=will_stay)
    while lock is not None:
        stays = lock.edition.stays
        _begin_log_anew(home)
        _raise_open_files()
        try:
            told_to_leave = await _keep(home, line, told, stays=stays)
        finally:
            lock.release()
        # Someone may have created a task after the last look and have seen the lock held.
        stay = not told_to_leave and _is_needed(home)
        lock = KeeperLock.acquire(home, stays=stays) if stay else None
    if line is not None:
        with contextlib.suppress(OSError):
            line.send(GOODBYE)


def _take_office(home: Home, *, stays: bool, will_stay: Callable[[], None]) -> KeeperLock | None:
    try:
        return take_office(home, stays=stays, will_stay=will_stay)
    except KeeperUnreachable as error:
        report(str(error))
        return None


async def _keep(
    home: Home, line: socket.socket | None, told: asyncio.Event, *, stays: bool
) -> bool:
    store = await _open_patiently(home, told)
    if store is None:
        return True
    keeper = Keeper(home, store, Settings.from_environment(), stays=stays)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, keeper.leave)
    if told.is_set():
        keeper.leave()
    if line is not None:
        line.setblocking(False)
        loop.add_reader(line.fileno(), _replace_guardian, line, home, stays)
    try:
        return await keeper.run()
    finally:
        if line is not None:
            loop.remove_reader(line.fileno())
        await store.close()


async def _open_patiently(home: Home, told: asyncio.Event) -> Store | None:
    """The store, however long a full disk or a foreign lock lasts; None when the home is gone,

    or is not for this keeper.
    """
    while home.root.is_dir() and not told.is_set():
        try:
            return open_store(home.root, boot_id())
        except StoreUnusable as error:
            report(f"the record cannot be opened: {error}")
            if is_out_of_bounds(home):
                return None
            await asyncio.sleep(_OPEN_AGAIN_S)
        except BackburnerError as error:
            report(f"the record cannot be opened yet: {error}")
            await asyncio.sleep(_OPEN_AGAIN_S)
    return None


def _is_needed(home: Home) -> bool:
    try:
        reader = Reader.if_current(home.database)
    except BackburnerError:
        return False
    if reader is None:
        return False
    try:
        return reader.any_active()
    finally:
        reader.close()


def _replace_guardian(line: socket.socket, home: Home, stays: bool) -> None:
    """The guardian died: a new one takes over the other end of a new line."""
    loop = asyncio.get_running_loop()
    loop.remove_reader(line.fileno())
    ours, theirs = socket.socketpair()
    theirs.set_inheritable(True)
    command = [sys.executable, "-m", "backburner.keeper.guardian", str(home.root)]
    command += [str(theirs.fileno()), *([STAY] if stays else [])]
    start_detached(command, home, pass_fds=(theirs.fileno(),))
    theirs.close()
    os.dup2(ours.fileno(), line.fileno(), inheritable=False)
    ours.close()
    line.setblocking(False)
    loop.add_reader(line.fileno(), _replace_guardian, line, home, stays)
    report("the guardian died; a new one was started")


def _raise_open_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _begin_log_anew(home: Home) -> None:
    with contextlib.suppress(OSError):
        if os.path.getsize(home.keeper_log) > _LOG_LIMIT:
            os.truncate(home.keeper_log, 0)  # written O_APPEND: it goes on from there
