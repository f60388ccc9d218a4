"""The lock that a keeper is elected by: had once, seen by all, lost to nobody who looks."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from backburner.model.home import Home
from backburner.runtime.edition import ours
from backburner.runtime.election import KeeperLock, Sitting, keeper_pid, sitting_keeper
from tests.faults.victims import nobody_keeps

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


def test_the_lock_is_had_once_and_is_not_lost_by_looking_at_it(home: Path) -> None:
    """A record lock is dropped when its process closes any descriptor of the file."""
    lock = KeeperLock.acquire(Home(home))
    assert lock is not None
    assert KeeperLock.acquire(Home(home)) is None
    for _ in range(3):
        assert keeper_pid(Home(home)) == os.getpid()
    program = (
        "import sys; from pathlib import Path; from backburner.model.home import Home\n"
        "from backburner.runtime.election import KeeperLock, keeper_pid\n"
        "home = Home(Path(sys.argv[1]))\n"
        "print(keeper_pid(home), KeeperLock.acquire(home))\n"
    )

    def seen_from_outside() -> str:
        command = [sys.executable, "-c", program, str(home)]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    assert seen_from_outside() == f"{os.getpid()} None\n"
    lock.release()
    lock.release()  # again: nothing happens
    assert keeper_pid(Home(home)) is None
    assert seen_from_outside().startswith("None <")


def test_looking_in_one_thread_does_not_drop_what_another_takes(home: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from backburner.model.home import Home\n"
        "from backburner.runtime.election import keeper_pid\n"
        "for _ in sys.stdin: print(keeper_pid(Home(Path(sys.argv[1]))), flush=True)\n"
    )
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            keeper_pid(Home(home))

    looking = [threading.Thread(target=look) for _ in range(2)]
    for thread in looking:
        thread.start()
    with subprocess.Popen(
        [sys.executable, "-c", program, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as outside:
        assert outside.stdin is not None
        assert outside.stdout is not None
        try:
            for _ in range(200):
                lock = KeeperLock.acquire(Home(home))
                assert lock is not None
                outside.stdin.write("\n")
                outside.stdin.flush()
                assert outside.stdout.readline() == f"{os.getpid()}\n"
                lock.release()
        finally:
            over.set()
            for thread in looking:
                thread.join()
            outside.stdin.close()


def test_who_is_seen_as_the_keeper_has_said_who_it_is(home: Path) -> None:
    """Elected and stopped by the scheduler before it could say so, it is no nameless keeper."""
    program = (
        "import os, sys; from pathlib import Path; from backburner.model.home import Home\n"
        "from backburner.runtime.election import KeeperLock\n"
        "write = os.pwrite\n"
        "def held_up(*arguments):\n"
        "    print('elected', flush=True); sys.stdin.readline(); return write(*arguments)\n"
        "os.pwrite = held_up\n"
        "lock = KeeperLock.acquire(Home(Path(sys.argv[1]))); print('seated', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "elected\n"
        assert sitting_keeper(Home(home)) is None
        assert KeeperLock.acquire(Home(home)) is None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "seated\n"
        assert sitting_keeper(Home(home)) == Sitting(process.pid, ours())
        process.communicate()


def test_a_keeper_in_another_container_is_a_keeper(home: Path) -> None:
    """Two that share a home: the kernel does not say there which process holds the lock."""
    program = (
        "import sys; from pathlib import Path; from backburner.model.home import Home\n"
        "from backburner.runtime.election import keeper_is_missing, sitting_keeper\n"
        "home = Home(Path(sys.argv[1]))\n"
        "print(sitting_keeper(home).pid, keeper_is_missing(home))\n"
    )
    become_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    with nobody_keeps(home):
        inside = ["unshare", "--pid", "--fork", *become_root, sys.executable, "-c", program, home]
        seen = subprocess.run(inside, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert seen == "0 False\n"
