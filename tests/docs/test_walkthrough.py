"""X10, X2: docs/from-laptop-to-cluster.md, run as it stands: a worker dies in the middle of it, and

every task is accounted for.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import postgres_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGE = Path(__file__).resolve().parents[2] / "docs/from-laptop-to-cluster.md"
_BOX = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END_ALL = "trap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n"


def test_x10_every_line_of_the_walkthrough_does_what_the_page_says(home: Path) -> None:
    boxes = _BOX.findall(PAGE.read_text())
    assert len(boxes) >= 10
    database = postgres_server.server().create_empty()
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RECORD": database,
        "XDG_STATE_HOME": str(home / "state"),
    }
    script = home / "walk.sh"
    script.write_text("set -euo pipefail\n" + _END_ALL + "\n".join(boxes))
    done = subprocess.run(
        ["bash", script], cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    told = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, told
    assert "Traceback" not in told
    assert "done on my laptop" in done.stdout
    assert "done on some machine" in done.stdout
    counted = re.search(r"^20 parts: (\d+) orphaned, (\d+) succeeded$", done.stdout, re.MULTILINE)
    assert counted is not None, told
    assert int(counted[1]) + int(counted[2]) == 20
    assert "21 told, 21 different" in done.stdout
    assert len((home / "again").read_text().split()) == int(counted[1])
    for number in (1, 2, 3):
        assert "takes on nothing more" in (home / f"machine-{number}.log").read_text()
