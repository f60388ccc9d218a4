"""Small disks for tests: pytest runs once more, in a mount namespace of its own.

What is mounted there nobody else sees, and it goes with the last process of that run. Root needs
nothing else; an ordinary user becomes root of a user namespace for this.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.faults.victims import kill_all_of_ours
from tests.waiting import wait_until

PAGE = 4096


def run_in_own_mounts(test: str) -> None:
    """Run one test of a file that pytest does not find by itself; fail with what it says."""
    __tracebackhide__ = True
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.fail("unshare is missing: install util-linux")
    become_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    run = subprocess.run(
        [unshare, "--mount", *become_root, sys.executable, "-m", "pytest"]
        + ["-q", "-p", "no:cacheprovider", f"tests/faults/{test}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    if run.returncode != 0:
        pytest.fail(f"{test} failed:\n{run.stdout}{run.stderr}", pytrace=False)


class Disk:
    """A small disk in memory, mounted in place of a home folder."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._filling = place / "filling"

    def mount(self, size: str) -> None:
        options = f"size={size},mode=700"
        _run("mount", "-t", "tmpfs", "-o", options, "backburner-test", str(self.place))

    def remount(self, option: str) -> None:
        """`ro` or `rw`."""
        _run("mount", "-o", f"remount,{option}", str(self.place))

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

    def users(self) -> str:
        import glob
        out = [subprocess.run(["umount", str(self.place)], capture_output=True, check=False, text=True).stderr]
        for d in glob.glob("/proc/[0-9]*"):
            for n in ("maps", "mountinfo"):
                try:
                    t = open(f"{d}/{n}").read()
                except OSError:
                    continue
                if str(self.place) in t:
                    out.append(f"{d}/{n} {open(d + '/cmdline').read()!r}")
            for l in (*glob.glob(d + "/fd/*"), d + "/cwd", d + "/root"):
                try:
                    if str(self.place) in os.readlink(l): out.append(l + " " + open(d + '/cmdline').read())
                except OSError: pass
        return chr(10).join(out)

    def unmount(self) -> bool:
        """Whether that went well; not while somebody uses it."""
        command = ["umount", str(self.place)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(home: Path) -> Iterator[Disk]:
    """The home of the test, on a disk of 6 MB."""
    disk = Disk(home)
    disk.mount("6m")
    yield disk
    kill_all_of_ours(home)
    # A job that is still there would keep it busy.
    wait_until(disk.unmount, timeout=10, message=lambda: f"{home} is in use: {disk.users()}")


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
