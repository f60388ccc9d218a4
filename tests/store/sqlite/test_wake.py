"""Waking other processes: a datagram says "look", and a slow look finds what nobody said (E7)."""

import asyncio
import contextlib
import os
import select
import socket
import stat
import threading
from pathlib import Path

import pytest

from backburner.store.sqlite import store as store_module
from backburner.store.sqlite.store import SqliteStore, open_store
from backburner.store.sqlite.wake import WakeFolder, WakeSocket
from tests.store.conformance.making import ADA, queued
from tests.store.conformance.test_waking import Bell
from tests.store.raw import Raw
from tests.store.sqlite.conftest import BOOT, Open
from tests.waiting import pause_async, wait_until


def sockets(folder: Path) -> set[str]:
    found: set[str] = set()
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # removed at this moment
            if stat.S_ISSOCK(path.lstat().st_mode):
                found.add(path.name)
    return found


def dead_socket(path: Path) -> None:
    """What a killed process leaves behind."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    folder = os.open(path.parent, os.O_RDONLY)
    listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    listener.close()
    os.close(folder)


def is_awake(listener: WakeSocket) -> bool:
    """Whether there is a datagram to read."""
    return bool(select.select([listener.fileno()], [], [], 0)[0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "wake"


def listening(folder: WakeFolder) -> WakeSocket:
    listener = folder.listen()
    assert listener is not None
    return listener


# Sockets


async def test_the_socket_of_a_dead_process_is_removed_at_the_next_change(
    store: SqliteStore, root: Path
) -> None:
    dead_socket(root / "wake" / "99999.0")
    assert len(sockets(root / "wake")) == 2
    await queued(store)
    wait_until(lambda: len(sockets(root / "wake")) == 1)


async def test_a_store_removes_its_socket_when_it_is_closed(open_here: Open, root: Path) -> None:
    first, second = open_here(), open_here()
    assert len(sockets(root / "wake")) == 2
    await first.close()
    assert len(sockets(root / "wake")) == 1
    await queued(second)
    await second.close()
    assert sockets(root / "wake") == set()


def test_the_socket_of_a_dead_process_that_had_our_pid_is_no_hindrance(folder: Path) -> None:
    wake = WakeFolder(str(folder))
    first = listening(wake)
    (name,) = sockets(folder)
    pid, number = name.split(".")
    assert int(pid) == os.getpid()
    dead_socket(folder / f"{pid}.{int(number) + 1}")
    second = listening(wake)
    other = WakeFolder(str(folder))
    other.wake_others()
    assert is_awake(first)
    assert is_awake(second)
    for each in (first, second, wake, other):
        each.close()
    assert sockets(folder) == set()


def test_nobody_wakes_itself(folder: Path) -> None:
    """A process knows of its own changes by a shorter way."""
    wake, other = WakeFolder(str(folder)), WakeFolder(str(folder))
    mine, its = listening(wake), listening(other)
    wake.wake_others()
    assert is_awake(its)
    assert not is_awake(mine)
    for each in (mine, its, wake, other):
        each.close()


def test_a_full_queue_neither_blocks_nor_fails_and_leaves_something_to_read(folder: Path) -> None:
    wake, other = WakeFolder(str(folder)), WakeFolder(str(folder))
    listener = listening(other)
    for _ in range(1000):  # the kernel keeps about a dozen
        wake.wake_others()
    assert is_awake(listener)
    listener.drain()
    assert not is_awake(listener)
    wake.wake_others()
    assert is_awake(listener)
    for each in (listener, wake, other):
        each.close()


def test_what_is_no_socket_in_the_folder_is_no_hindrance(folder: Path) -> None:
    wake, other = WakeFolder(str(folder)), WakeFolder(str(folder))
    listener = listening(other)
    (folder / "a-file").touch()
    (folder / "a-folder").mkdir()
    (folder / "a-link").symlink_to("/nowhere")
    wake.wake_others()
    assert is_awake(listener)
    for each in (listener, wake, other):
        each.close()


def test_a_folder_that_is_gone_is_no_hindrance(folder: Path) -> None:
    wake = WakeFolder(str(folder))
    folder.rmdir()
    wake.wake_others()
    wake.close()


# Homes


@pytest.fixture
def slow_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow fallback is out of the way: who is woken now is woken by what was said."""
    monkeypatch.setattr(store_module, "_LOOK_EVERY_S", 3600)


async def test_e7_a_datagram_wakes_other_processes(slow_look: None, open_here: Open) -> None:
    store, others = open_here(), [open_here() for _ in range(3)]
    bells = [Bell() for _ in others]
    for other, bell in zip(others, bells, strict=True):
        other.on_change(bell)
    for _ in range(5):
        await asyncio.gather(*(bell.rings_after(queued(store)) for bell in bells))


async def test_e7_a_process_wakes_itself_without_one(slow_look: None, open_here: Open) -> None:
    store, bell = open_here(), Bell()
    store.on_change(bell)
    for _ in range(5):
        await bell.rings_after(queued(store))


@pytest.mark.parametrize("length", [90, 108, 200, 400])
async def test_a_home_with_a_long_path_wakes_too(
    slow_look: None, open_here: Open, tmp_path: Path, length: int
) -> None:
    """An address of a socket has room for 107 bytes only (and SQLite for 512)."""
    home = tmp_path
    while len(str(home)) < length:
        home /= "x" * min(200, max(1, length - len(str(home)) - 1))
    first, second = open_here(home), open_here(home)
    assert len(sockets(home / "wake")) == 2
    bell = Bell()
    second.on_change(bell)
    task = await bell.rings_after(queued(first))
    assert await second.get(task.id) is not None


# Nothing is missed


async def test_a_listener_that_was_busy_is_woken_and_sees_everything_afterwards(
    slow_look: None, open_here: Open, root: Path
) -> None:
    """Its loop stood still while another process made hundreds of changes: the queue overflowed."""
    store, bell = open_here(), Bell()
    store.on_change(bell)

    def other_process() -> None:
        async def work() -> None:
            other = open_store(root, BOOT)
            for _ in range(300):
                await queued(other)
            await other.close()

        asyncio.run(work())

    async def standing_still() -> None:
        thread = threading.Thread(target=other_process)
        thread.start()
        thread.join()  # in this very loop, which therefore reads no datagram

    await bell.rings_after(standing_still())
    assert len(await store.newest(ADA, limit=1000)) == 300


async def test_a_change_whose_writer_died_before_it_could_tell_is_noticed(
    store: SqliteStore, database: Path
) -> None:
    """Killed between its commit and its datagrams: as any program that writes and says nothing."""
    await queued(store, "bg_1")
    await pause_async(1.1, because="the look that notices our own change has to be over")
    bell = Bell()
    store.on_change(bell)

    async def commit_and_die() -> None:
        with Raw(database) as raw:
            raw("UPDATE task SET title = 'changed' WHERE id = 'bg_1'")

    async with asyncio.timeout(30):
        await bell.rings_after(commit_and_die())
    task = await store.get("bg_1")
    assert task is not None
    assert task.title == "changed"


async def test_nobody_is_called_while_nothing_changes(
    open_here: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_LOOK_EVERY_S", 0.01)
    store, other = open_here(), open_here()
    await queued(other)
    await other.close()  # so that it has said all it will say
    await pause_async(0.1, because="what was said about that change is to be over")
    bell = Bell()
    store.on_change(bell)
    await pause_async(0.2, because="the test is that nothing happens for a time")
    assert bell.count == 0
