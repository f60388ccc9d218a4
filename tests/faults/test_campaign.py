"""The campaign: kill -9 at random moments under load, then check every promise (A3, X1, X2, E12).

On one machine, and on four that share a record. Where machines are cut off it is `test_cut_off.py`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.campaign import campaign
from tests.faults.grounds import DEAD_AFTER_S, WORKERS, HomeGround, SharedGround
from tests.postgres_server import Server


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("half", range(2))  # side by side: all at once was the longest test
async def test_promises_hold_through_10_rounds_of_kill_9(home: Path, half: int) -> None:
    await campaign(HomeGround(home), 5)


@pytest.mark.faults
@pytest.mark.timeout(3600)
async def test_promises_hold_through_200_rounds_of_kill_9(home: Path) -> None:
    await campaign(HomeGround(home), 200)


@pytest.fixture
def shared_ground(
    home: Path,
    new_home: Callable[[], Path],
    own_server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SharedGround]:
    """Applications keep copies of output in ``home``."""
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", str(DEAD_AFTER_S))
    ground = SharedGround(own_server, [new_home() for _ in range(WORKERS)])
    yield ground
    ground.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_x10_promises_hold_on_four_machines_through_5_rounds_of_kill_9(
    shared_ground: SharedGround,
) -> None:
    """Applications, workers and the database."""
    await campaign(shared_ground, 5)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("quarter", range(4))
async def test_x10_promises_hold_on_four_machines_through_200_rounds_of_kill_9(
    shared_ground: SharedGround, quarter: int
) -> None:
    await campaign(shared_ground, 50)
