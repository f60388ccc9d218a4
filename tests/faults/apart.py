"""Tests that need a machine of their own: pytest runs once more, in namespaces of its own.

What is mounted or limited there nobody else notices, and it goes with the last process of that
run. Such tests are in files that pytest does not find by itself (`on_…`), and a test beside them
runs each. An ordinary user becomes root of a user namespace for this. What is skipped there is
skipped here: else a promise that nobody has tried would look kept.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

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
) -> dict[str, str]:
    """Run one test, or all of a file, named from `tests` on; fail or skip with what it says.

    Answers what was noted there with `record_property`.
    """
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
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        run = subprocess.run(
            [unshare, *options, *pytest_again, f"--junit-xml={report}", f"tests/{test}"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if run.returncode != 0:
            pytest.fail(f"{test} failed:\n{run.stdout}{run.stderr}", pytrace=False)
        root = ET.parse(report).getroot()
    if root.find(".//testcase") is None:
        pytest.fail(f"{test} is no test:\n{run.stdout}{run.stderr}", pytrace=False)
    if skipped := [each.get("message", "") for each in root.iterfind(".//testcase/skipped")]:
        pytest.skip("; ".join(dict.fromkeys(skipped)))
    noted = root.iterfind(".//testcase/properties/property")
    return {each.get("name", ""): each.get("value", "") for each in noted}
