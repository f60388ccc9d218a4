"""Finding processes in /proc, and killing those of ours: keeper and guardian of a home.

Looks for itself and does not ask the code under test, but for the pid that the kernel names as the
holder of the keeper lock.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
from collections.abc import Generator
from pathlib import Path

from backburner.model.home import AttemptFolder, Home
from backburner.runtime.election import KeeperLock, keeper_pid
from backburner.work.process.condition import Alive, inspect
from tests.waiting import wait_until, wait_until_async


def unique_seconds() -> str:
    """A duration for `sleep` that no other process has in its arguments: about an hour."""
    return f"3600.{secrets.randbelow(10**9):09d}"


def all_pids() -> list[int]:
    """Every process there is."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def arguments_of(pid: int) -> list[str]:
    """The arguments of a process; none where it is gone or has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsdecode(file.read()).rstrip("\0").split("\0")
    except OSError:
        return []


def processes_with(argument: str) -> list[int]:
    """Processes that have exactly this argument. One that has ended has none, collected or not."""
    return [pid for pid in all_pids() if argument in arguments_of(pid)]


def sleepers(seconds: str) -> list[int]:
    """The processes that are really asleep for this long, and no shell that is about to be."""
    return [pid for pid in processes_with(seconds) if _program(pid) == "sleep"]


def _program(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    """Whether it is there, and more than an entry that nobody has collected."""
    return _state(pid) not in ("", "Z", "X")


def _state(pid: int) -> str:
    """The letter of the kernel; nothing where it is gone."""
    fields = _stat(pid)
    return fields[0].decode() if fields else ""


def _stat(pid: int) -> list[bytes]:
    """What the kernel says of it, from its state on; nothing where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return []
    return stat[stat.rindex(b")") + 2 :].split()


def children_of(pid: int) -> list[int]:
    """The processes whose parent it is, ended ones that were not collected included."""
    return [child for child in all_pids() if parent_of(child) == pid]


def parent_of(pid: int) -> int:
    """Its parent; 0 where it is gone."""
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def keeper_of(home: Path) -> int | None:
    """The keeper, by the lock that it holds."""
    return keeper_pid(Home(home))


def keepers_of(home: Path) -> list[int]:
    """Every process that was started as a keeper of this home, elected or not."""
    return _started_as("backburner.keeper", home)


def guardians_of(home: Path) -> list[int]:
    """Every guardian of this home."""
    return _started_as("backburner.keeper.guardian", home)


def _started_as(module: str, home: Path) -> list[int]:
    # Not `sh -c '"$@" &' sh python -m …`: that is the starter.
    return [pid for pid in all_pids() if arguments_of(pid)[1:4] == ["-m", module, str(home)]]


def kill(*pids: int) -> None:
    """KILL, and wait until they are gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(is_running(pid) for pid in pids), message=f"{pids} survived SIGKILL")


def suspend(home: Path, pid: int) -> None:
    """Stop it (SIGSTOP), but not in the middle of a write: nobody else could write any more."""

    def between_writes() -> bool:
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: _state(pid) == "T", message=f"{pid} does not stop")
        with open(Home(home).write_lock, "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # by this one, or by another that is not stopped
                os.kill(pid, signal.SIGCONT)
                return False
        return True

    wait_until(between_writes, message=f"{pid} writes without end")


def wait_for_keeper(home: Path, *, other_than: int | None = None) -> int:
    """The keeper, once there is one and it is not this one."""

    def another() -> int | None:
        pid = keeper_of(home)
        return None if pid == other_than else pid

    return wait_until(another, message="no keeper came")


async def keeper_comes(home: Path, *, other_than: int | None = None) -> int:
    """The same while the event loop goes on: an application may have to call it once more."""

    def another() -> int | None:
        pid = keeper_of(home)
        return None if pid == other_than else pid

    return await wait_until_async(another, message="no keeper came")


def kill_keeper(home: Path) -> int:
    """Kill the keeper, waiting for one where there is none. Its guardian lives."""
    pid = wait_for_keeper(home)
    kill(pid)
    return pid


def has_begun(folder: AttemptFolder) -> bool:
    """Whether its wrapper got the word to run the command, and lives."""
    condition = inspect(folder)
    return isinstance(condition, Alive) and condition.pid is not None


def kill_all_of_ours(home: Path) -> None:
    """Kill guardian and keeper, so that nobody looks after the home."""

    def one_more_round() -> bool:
        # Whoever names both: the shell that is about to become a guardian too.
        ours = {
            pid: arguments
            for pid in all_pids()
            if str(home) in (arguments := arguments_of(pid))
            and {"backburner.keeper", "backburner.keeper.guardian"} & set(arguments)
        }
        # Not a child that has yet to become another program, and goes by its parent's name: the
        # shell of a job, as which it would be killed. Should it be of ours the next round has it.
        pids = [pid for pid, arguments in ours.items() if ours.get(parent_of(pid)) != arguments]
        kill(*pids)
        # A dying process loses its name before its locks.
        return not ours and keeper_of(home) is None

    wait_until(one_more_round, message="keeper and guardian come back again and again")


def let_keepers_leave(home: Path) -> None:
    """On purpose, as at the end of a login session."""

    def gone() -> bool:
        # Again: a second one may have been on its way, and sees now that the office is free.
        if (pid := keeper_of(home)) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return not keepers_of(home) and not guardians_of(home)

    wait_until(gone)


def take_away(home: Path) -> None:
    """Remove a home under its keeper, which puts a file in the way at any moment, or takes one."""

    def gone() -> bool:
        shutil.rmtree(home, ignore_errors=True)
        return not home.exists()

    wait_until(gone)


@contextlib.contextmanager
def nobody_keeps(home: Path) -> Generator[None]:
    """While this lasts, this process has the keeper lock, and does nothing with it."""
    home.mkdir(mode=0o700, exist_ok=True)
    lock = KeeperLock.acquire(Home(home))
    assert lock is not None, "somebody keeps it already"
    try:
        yield
    finally:
        lock.release()
