"""Tests that need a machine of their own: pytest runs once more, in namespaces of its own.

What is mounted or limited there nobody else notices, and it goes with the last process of that
run. Such tests are in files that pytest does not find by itself (`on_…`), and a test beside them
runs each. An ordinary user becomes root of a user namespace for this.
"""

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

_FIRST_PROCESS = ["sh", "-c", '"$@"; exit', "sh"]
"""It collects whatever loses its parent, as the first process of a machine does."""


def run_apart(
    test: str,
    *,
    own_user: bool = False,
    own_pids: bool = False,
    own_network: bool = False,
    timeout: float = 110,
) -> None:
    """Run one test, or all of a file, named from `tests` on; fail with what it says."""
    __tracebackhide__ = True
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.fail("unshare is missing: install util-linux")
    options = ["--mount", *(["--net"] if own_network else [])]
    if own_user or os.geteuid() != 0:
        options += ["--user", "--map-root-user"]
    if own_pids:
        options += ["--pid", "--fork", "--kill-child", "--mount-proc", *_FIRST_PROCESS]
    plugins = ["-p", "no:cacheprovider", "-p", "tests.faults.disks"]
    pytest_again = [sys.executable, "-m", "pytest", "-q", *plugins]
    run = subprocess.run(
        [unshare, *options, *pytest_again, f"tests/{test}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if run.returncode != 0:
        pytest.fail(f"{test} failed:\n{run.stdout}{run.stderr}", pytrace=False)
