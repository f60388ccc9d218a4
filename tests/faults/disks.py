"""A small disk in place of a home folder, for tests that `apart.py` runs in mounts of their own."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.victims import all_pids, kill_all_of_ours
from tests.waiting import wait_until

PAGE = 4096


class Disk:
    """A disk in memory, mounted at a folder."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._filling = place / "filling"

    def mount(self, size: str) -> None:
        options = ["-o", f"size={size},mode=700"]
        _run("mount", "-t", "tmpfs", *options, "backburner-test", str(self.place))

    def remount(self, option: str) -> None:
        """`ro` or `rw`. Not while somebody writes: who was killed a moment ago still has files."""
        command = ["mount", "-o", f"remount,{option}", str(self.place)]
        wait_until(
            lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0,
            message="the disk is busy",
        )

    def unmount(self) -> bool:
        """Whether that went well; not while somebody uses it."""
        command = ["umount", str(self.place)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def is_full(self) -> bool:
        """Whether not a page is left."""
        return os.statvfs(self.place).f_bavail == 0

    def fill(self) -> None:
        """Use up every page."""
        with self._filling.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(PAGE))
            except OSError:
                assert self.is_full()

    def clear(self) -> None:
        """Give them back."""
        self._filling.unlink()


@pytest.fixture
def disk(home: Path) -> Iterator[Disk]:
    """The home of the test, on a disk of 6 MB."""
    disk = Disk(home)
    disk.mount("6m")
    yield disk

    def let_go() -> bool:
        # In turns: one that was just being started may have escaped the first look.
        kill_all_of_ours(home)
        return disk.unmount()

    # A job that is still there keeps it busy.
    wait_until(let_go, message=lambda: f"{home} is in use by {_users_of(home)}")


def _users_of(folder: Path) -> list[str]:
    """Processes that have a file of it open or in their memory."""
    found: list[str] = []
    for pid in all_pids():
        links = [Path(f"/proc/{pid}/cwd"), *Path(f"/proc/{pid}/fd").glob("*")]
        names = [name for link in links if (name := _target(link)).startswith(str(folder))]
        if str(folder) in _text(Path(f"/proc/{pid}/maps")):
            names.append("in its memory")
        found += [f"{pid} ({_text(Path(f'/proc/{pid}/comm')).strip()}): {name}" for name in names]
    return found


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
