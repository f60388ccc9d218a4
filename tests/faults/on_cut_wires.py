"""The campaign with machines that are cut off. `test_cut_off.py` runs this in its own network."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.campaign import campaign
from tests.faults.cut_ground import SILENT_S, CutGround
from tests.nodes.networks import HERE, Network
from tests.postgres_server import Server


@pytest.fixture
def ground(
    home: Path, new_home: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CutGround]:
    """Applications keep copies of output in ``home``."""
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", str(SILENT_S))
    network = Network()
    server = Server(listen=HERE)
    made = CutGround(server, network, new_home)
    yield made
    made.close()
    server.close()


@pytest.mark.timeout(100)
async def test_x10_promises_hold_through_2_rounds_of_cut_wires(ground: CutGround) -> None:
    await campaign(ground, 2)


@pytest.mark.timeout(1700)
async def test_x10_promises_hold_through_20_rounds_of_cut_wires(ground: CutGround) -> None:
    """So many that machines have died of which something was orphaned, and something taken up."""
    sums = await campaign(ground, 20)
    assert sums.orphaned
    assert sums.taken_up
    # A machine that is too busy is silent, too: a few may be so, and more would be our doing.
    assert sums.in_vain * 5 <= sums.orphaned
