"""Disks for tests: a program runs in a mount namespace of its own, and what it mounts goes with it.

Root needs nothing else; an ordinary user becomes root of a user namespace for this.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY


def run_in_own_mounts(module: str) -> None:
    """Run `python -m module`; the test fails with what it says when it fails."""
    __tracebackhide__ = True
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.fail("unshare is missing: install util-linux")
    become_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    run = subprocess.run(
        [unshare, "--mount", *become_root, sys.executable, "-m", module],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if run.returncode != 0:
        pytest.fail(f"{module} failed:\n{run.stdout}{run.stderr}")


def mount_disk(size: str) -> Path:
    """A disk of this size in memory. Only for a program that `run_in_own_mounts` has started."""
    place = Path("/mnt")
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "backburner-test", str(place)]
    subprocess.run(command, check=True)
    return place


def remount(place: Path, option: str) -> None:
    """`ro` or `rw`."""
    subprocess.run(["mount", "-o", f"remount,{option}", str(place)], check=True)
