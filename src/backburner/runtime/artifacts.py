"""Files that tasks of a shared record have added: brought to where all machines read them, and

fetched from there.

Files are brought while their task runs, and what is missing before its end is written, where its
node does that: who hears of the end finds them. The record knows of a folder before the first file
goes there, so that forgetting a task removes everything. A place that does not answer holds no end
up for ever: the files then stay on the machine of the task, and the task says so.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from backburner.model.errors import ArtifactsUnreachable, NotFound, StoreClosed, UsageError
from backburner.model.events import EventKind
from backburner.model.home import AttemptFolder, Home
from backburner.model.limits import ARTIFACTS_MAX, Settings
from backburner.model.task import StoredArtifacts, Task
from backburner.runtime.threads import in_thread
from backburner.store.postgres.mirror import Mirror
from backburner.store.postgres.node import NodeStore
from backburner.store.protocol import Facts, Store
from backburner.work.artifacts import artifacts_of, is_name, open_file
from backburner.work.depot import Depot

_EVERY_S = 1.0
_AT_ONCE = 4
_PATIENCE_S = 60.0
"""How long the end of a task waits for a place that does not answer."""
_SLOWEST = 1024 * 1024
"""Bytes a second that a place takes at least, as long as it is waited for."""
_FIRST_AGAIN_S, _LONGEST_AGAIN_S = 0.5, 30.0
_REMOVED_AT_ONCE = 200
_THREAD = "backburner-artifacts"
_OF = ".of"
"""Says whose copies a folder holds: an id may be used again."""

_Sign = tuple[int, int, int]
"""Which file it is, how long, and when it was changed."""


@dataclass(slots=True)
class _Known:
    """What was done for one attempt: nothing, to begin with."""

    begun: bool = False
    """The record knows of the folder that the files go to."""
    brought: dict[str, _Sign] = field(default_factory=dict[str, _Sign])
    """Files that lie there as they are here."""
    listed: dict[str, _Sign] = field(default_factory=dict[str, _Sign])
    """Those that the record names. It may be away when others lie there already."""


def depot_of(settings: Settings) -> Depot | None:
    """The place that the settings name; UsageError where that can be none."""
    return Depot(settings.artifacts) if settings.artifacts else None


class Bringer:
    """Brings the files of one node, and lists them in the record."""

    def __init__(
        self,
        store: NodeStore,
        home: Home,
        settings: Settings,
        at_work: Callable[[], Collection[Task]],
        report: Callable[[str], None],
    ) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._at_work = at_work
        self._report = report
        self._depot = depot_of(settings)
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._putting: set[asyncio.Task[None]] = set()
        self._leaves = False
        self._known: dict[tuple[str, int], _Known] = {}
        self._turns: dict[tuple[str, int], asyncio.Lock] = {}
        self._again_s = _FIRST_AGAIN_S
        store.before_end.append(self.bring_all)

    async def run(self) -> None:
        """Again and again, until cancelled: what was added since."""
        while True:
            await asyncio.sleep(_EVERY_S)
            tasks = self._at_work()
            self._forget_all_but({(task.id, task.attempt) for task in tasks})
            failed: dict[str, Exception] = {}
            for task in tasks:
                try:
                    await self._bring(task)
                except Exception as error:  # noqa: BLE001 - what is missing is brought at the end
                    failed[task.id] = (
                        error  # the others' do not wait for it: it may be its own fault
                    )
            if not failed:
                self._again_s = _FIRST_AGAIN_S
                continue
            for one, error in [*failed.items()][:1]:
                more = f", nor those of {len(failed) - 1} more" if len(failed) > 1 else ""
                self._report(f"{one}: artifacts were not brought{more}: {error}")
            await asyncio.sleep(self._again_s)
            self._again_s = min(self._again_s * 2, _LONGEST_AGAIN_S)

    async def bring_all(self, task: Task) -> None:
        """Before its end is written: everything, or a word that it is not there."""
        folder = self._home.attempt(task.id, task.attempt)
        if not _any(folder):
            return
        deadline = time.monotonic() + _PATIENCE_S + self._size(folder) / _SLOWEST
        wait = _FIRST_AGAIN_S
        while True:
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    await self._bring(task)
                    return
            except UsageError as error:
                reason = str(error)
                break
            except (ArtifactsUnreachable, NotFound, TimeoutError, OSError) as error:
                reason = str(error) or f"{self._settings.artifacts} does not answer"
                self._report(f"{task.id}: artifacts were not brought: {reason}")
            if time.monotonic() + wait > deadline:
                break
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_AGAIN_S)
        text = f"artifacts stay on the machine of the task, in {folder.artifacts}: {reason}"
        await self._store.note(task.id, task.attempt, EventKind.DETAIL, Facts(detail=text))

    def _forget_all_but(self, here: set[tuple[str, int]]) -> None:
        for key in [key for key in self._turns if key not in here]:
            if not self._turns[key].locked():
                del self._turns[key]
                self._known.pop(key, None)

    def close(self) -> None:
        """What is being brought is left to whoever comes next."""
        self._leaves = True
        self._free.release()  # who waits for a thread hears so, one after the other
        for putting in self._putting:
            putting.cancel()

    def _size(self, folder: AttemptFolder) -> int:
        return sum(each.bytes for each in artifacts_of(folder))

    async def _bring(self, task: Task) -> None:
        key = (task.id, task.attempt)
        folder = self._home.attempt(*key)
        if not _any(folder):
            return
        async with self._turns.setdefault(key, asyncio.Lock()):
            found = await asyncio.to_thread(_signs, folder, self._limits(task))
            known = self._known.setdefault(key, _Known())
            if found == known.listed:
                return
            if self._depot is None:
                await self._list(task, folder.artifacts, found)
            elif not await self._bring_to(self._depot, task, found, known):
                return  # it is over, for somebody else
            known.listed = found

    async def _bring_to(
        self, depot: Depot, task: Task, found: dict[str, _Sign], known: _Known
    ) -> bool:
        where = f"{task.id}.{task.attempt}.{task.seq}"
        if not known.begun:
            # What an earlier process of this node has brought stays listed: it may be all there is.
            known.begun = await self._store.begin_artifacts(task.id, self._stored(task, where, {}))
        if not known.begun:
            return False
        folder = self._home.attempt(task.id, task.attempt)
        for name, sign in found.items():
            if known.brought.get(name) != sign:
                await self._put(depot, folder, where, name, sign)
                known.brought[name] = sign
        await self._list(task, where, found)
        return True

    async def _put(
        self, depot: Depot, folder: AttemptFolder, where: str, name: str, sign: _Sign
    ) -> None:
        def put() -> None:
            fd = open_file(folder, name)
            try:
                depot.put(where, name, fd, sign[1])
            finally:
                os.close(fd)

        await self._free.acquire()
        if self._leaves:
            self._free.release()
            raise _leaves()
        # Not before its thread is over: a place that hangs would be given more and more of them.
        putting = asyncio.create_task(in_thread(put, _THREAD, self._free.release))
        self._putting.add(putting)
        try:
            await asyncio.wait([putting])
            if putting.cancelled():
                raise _leaves()
            putting.result()
        finally:
            self._putting.discard(putting)
            putting.cancel()

    async def _list(self, task: Task, folder: str, found: dict[str, _Sign]) -> None:
        await self._store.put_artifacts(task.id, self._stored(task, folder, found))

    def _stored(self, task: Task, folder: str, found: dict[str, _Sign]) -> StoredArtifacts:
        sizes = {name: size for name, (_, size, _) in found.items()}
        return StoredArtifacts(
            task.attempt, self._depot.address if self._depot else "", folder, sizes
        )

    def _limits(self, task: Task) -> tuple[int, int]:
        one, every = task.spec.get("artifacts") or (None, None)
        return one or self._settings.artifact_limit, every or self._settings.artifacts_limit


def _leaves() -> StoreClosed:
    """Nor is an end written that has waited for it."""
    return StoreClosed("this program leaves", remedy="start it again")


def _any(folder: AttemptFolder) -> bool:
    """Most tasks add none: one call of the kernel, which need not leave the event loop."""
    return os.path.isdir(folder.artifacts)


def _signs(folder: AttemptFolder, limits: tuple[int, int]) -> dict[str, _Sign]:
    """What is there, within the limits: a job can put files there past `backburner artifact`."""
    one, room = limits
    found: dict[str, _Sign] = {}
    for each in artifacts_of(folder):
        try:
            fd = open_file(folder, each.name)
        except NotFound:
            continue
        try:
            status = os.fstat(fd)
        finally:
            os.close(fd)
        if status.st_size > one or status.st_size > room or len(found) >= ARTIFACTS_MAX:
            continue
        room -= status.st_size
        found[each.name] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found


# Reading


async def fetch_artifact(depot: Depot | None, home: Home, task: Task, name: str) -> None:
    """Have a file here that another machine has added, in the folder of its attempt.

    NotFound where there is none of that name; ArtifactsUnreachable where it cannot be read here.
    """
    stored = task.artifacts
    size = None if stored is None else stored.sizes.get(name)
    if stored is None or size is None or not is_name(name):
        raise NotFound(f"no artifact {name!r}")
    folder = home.attempt(task.id, stored.attempt)
    if _is_original(folder):
        return
    if not stored.place:
        raise ArtifactsUnreachable(
            f"{name!r} stays on the machine of the task",
            remedy="give all machines BACKBURNER_ARTIFACTS=s3://bucket/folder, or a common folder",
        )
    if depot is None or depot.address != stored.place:
        raise ArtifactsUnreachable(
            f"{name!r} lies in {stored.place}",
            remedy=f"set BACKBURNER_ARTIFACTS={stored.place} here, too",
        )
    get = partial(depot.get, stored.folder, name)
    await in_thread(lambda: _fetch(get, folder, name, stored), _THREAD)


def _is_original(folder: AttemptFolder) -> bool:
    """Whether the attempt was carried out here: these are no copies."""
    return _any(folder) and not os.path.exists(f"{folder.artifacts}/{_OF}")


def _fetch(
    get: Callable[[int, int], None], folder: AttemptFolder, name: str, stored: StoredArtifacts
) -> None:
    place, size = folder.artifacts, stored.sizes[name]
    _make_room(folder, stored.folder)
    path, fresh = f"{place}/{name}", f"{place}/.{secrets.token_hex(8)}"
    with contextlib.suppress(FileNotFoundError):
        if os.lstat(path).st_size == size:
            return
    fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        get(fd, size)
        os.rename(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
    finally:
        os.close(fd)


def _make_room(folder: AttemptFolder, whose: str) -> None:
    """Have a place for copies of that folder, and of no other: an id may have been used again."""
    with contextlib.suppress(FileNotFoundError):
        with open(f"{folder.artifacts}/{_OF}", encoding="utf-8") as file:
            if file.read() == whose:
                return
        shutil.rmtree(folder.artifacts)
    fresh = f"{folder.artifacts}.{secrets.token_hex(8)}"
    os.makedirs(fresh, mode=0o700)
    with open(f"{fresh}/{_OF}", "w", encoding="utf-8") as file:
        file.write(whose)
    try:
        os.rename(fresh, folder.artifacts)  # with its mark, or not at all: it says what is original
    except OSError:  # somebody else was quicker
        shutil.rmtree(fresh)


# Forgetting


async def remove_left(store: Store, address: str) -> None:
    """Remove the files of tasks that were forgotten, at a place that this machine knows.

    Killed in between, the next one goes on.
    """
    assert isinstance(store, Mirror)
    depot = Depot(address)
    while folders := await store.artifacts_left(depot.address, _REMOVED_AT_ONCE):
        for folder in folders:
            await in_thread(partial(depot.remove, folder), _THREAD)
            await store.artifacts_removed(depot.address, folder)
