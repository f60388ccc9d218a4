"""A home that the tests of one module share, with one keeper for all of them.

For tests that leave the keeper alone: to let go of a home takes a second, because its keeper looks
for it once a second. The leak check is the same, once for the module.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from backburner.model.home import Home
from backburner.work import handover
from tests import leftovers
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def home_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder; it and everything that belongs to it has to go when the module is done."""
    home = tmp_path_factory.mktemp("shared") / "h"
    home.mkdir(mode=0o700)
    yield home

    def remaining() -> list[leftovers.Leftover]:
        shutil.rmtree(home, ignore_errors=True)
        return leftovers.processes_of(home)

    wait_until(lambda: not remaining(), message=lambda: f"left behind: {remaining()}")


@pytest.fixture
def shared_home(
    home_of_module: Path, clean_environment: None, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The home of this module, which the environment names."""
    monkeypatch.setenv("BACKBURNER_HOME", str(home_of_module))
    monkeypatch.setenv("BACKBURNER_SESSION", "test")
    return home_of_module


def waiting_starts(home: Path) -> list[str]:
    """The tasks whose environment still lies in the home, for a keeper to start them with."""
    return [piece.task for piece in handover.pieces(Home(home))]
