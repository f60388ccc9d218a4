"""X2, X10, E11: machines that are cut off from the database, in a network of their own."""

import os
from collections.abc import Callable

import pytest

from tests.faults.apart import run_apart
from tests.nodes.networks import why_impossible

pytestmark = [pytest.mark.slow]


@pytest.mark.parametrize(
    "case",
    [
        "test_e11_x2_what_a_machine_has_that_is_cut_off_is_orphaned_and_ended_when_it_is_back",
        "test_x2_a_short_cut_is_no_death",
        "test_x2_whoever_is_cut_off_in_the_middle_of_a_write_does_not_keep_the_others",
        "test_x2_the_database_lets_go_of_who_is_gone",
        "test_x10_a_wire_that_drops_and_delays_loses_and_doubles_nothing",
    ],
)
def test_x10_on_a_network(case: str, record_property: Callable[[str, object], None]) -> None:
    if os.geteuid() != 0:
        pytest.skip("LOUD: only root can run PostgreSQL and workers in networks of their own")
    if (reason := why_impossible()) is not None:
        pytest.skip(f"LOUD: no machine can be cut off here: {reason}")
    for name, value in run_apart(f"nodes/on_a_network.py::{case}", own_network=True).items():
        record_property(name, value)
        print(f"{name} {value}")
