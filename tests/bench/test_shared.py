"""What `make bench` measures of many machines still can be measured; how it stands, it says there.

Small sizes, beside other tests: so the numbers are looked at for being there, and for nothing else.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.faults  # minutes

NAMES = (
    "machines",
    "machines-start",
    "machines-reach",
    "machines-growth",
    "machines-logs",
    "simulation",
)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_measured(name: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench", name, "--quick", "--json", file],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(file.read_text())["rows"]
    assert rows
    for row in rows:
        assert row["ours"] is not None, row
        # Where it is measured beside something, that was measured too.
        assert row["raw"] is None or row["raw"] > 0, row
