"""X2, X10, E11: the campaign on machines that are also cut off, stay away or are lost for good."""

import os

import pytest

from tests.faults.apart import run_apart
from tests.nodes.networks import why_impossible

_CASE = "faults/on_cut_wires.py::test_x10_promises_hold_through_{}_rounds_of_cut_wires"


@pytest.fixture(autouse=True)
def own_network() -> None:
    if os.geteuid() != 0:
        pytest.skip("LOUD: only root can run PostgreSQL and workers in networks of their own")
    if (reason := why_impossible()) is not None:
        pytest.skip(f"LOUD: no machine can be cut off here: {reason}")


@pytest.mark.slow
def test_x10_promises_hold_through_2_rounds_of_cut_wires() -> None:
    run_apart(_CASE.format(2), own_network=True)


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("half", range(2))  # side by side: they mostly wait for a silence
def test_x10_promises_hold_through_40_rounds_of_cut_wires(half: int) -> None:
    run_apart(_CASE.format(20), own_network=True, timeout=1750)
