"""What the tests of the command line share: the program, and goldens."""

from pathlib import Path

import pytest

from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.nursery import Nursery


@pytest.fixture
def backburner(home: Path, nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The real program, in a home of its own."""
    for name in ("NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return Program(nursery)


@pytest.fixture
def golden(tmp_path: Path) -> Golden:
    """Compares with the files beside; `UPDATE_GOLDEN=1` writes them."""
    return Golden({str(tmp_path): "/TMP"})
