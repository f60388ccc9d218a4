"""The promise, whatever happens: random starts, stops, kills, answers, restarts and clock jumps.

E4, E8, E10, E11, E12, D2, D6, X1, X2: each life is checked task by task at its end; `promise` says
for what. On a home, and on a record that four workers share (X10); `grounds` says what differs.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import run_state_machine_as_test

from tests.postgres_server import Server
from tests.runtime.machine.grounds import SILENT_S, HomeGround, NewGround, SharedGround
from tests.runtime.machine.machine import Machine


def live(new_ground: NewGround, lives: int, steps: int) -> None:
    """So many lives, of so many steps each."""
    machine = type("Machine", (Machine,), {"new_ground": staticmethod(new_ground)})
    ways = settings(
        max_examples=lives,
        stateful_step_count=steps,
        deadline=None,
        derandomize=False,  # as it is in CI, where they would be the same lives each time
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        # The same steps may go well the next time: a smaller failure would take hours to find.
        phases=(Phase.generate,),
        database=None,
    )
    try:
        run_state_machine_as_test(machine, settings=ways)
    except FlakyFailure as failure:  # so they did: what went wrong is told once, with its story
        raise failure.exceptions[0] from None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_e10_e11_x1_x2_the_promise_is_kept_whatever_happens(new_home: Callable[[], Path]) -> None:
    live(lambda: HomeGround(new_home()), 8, 25)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_e10_e11_x1_x2_the_promise_is_kept_through_many_lives(
    new_home: Callable[[], Path],
) -> None:
    live(lambda: HomeGround(new_home()), 200, 40)


@pytest.fixture
def new_shared_ground(
    home: Path,  # where the application of this process has its copies
    new_home: Callable[[], Path],
    own_server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> NewGround:
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", str(SILENT_S))
    return lambda: SharedGround(own_server, new_home)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_x10_the_promise_is_kept_on_four_machines_whatever_happens(
    new_shared_ground: NewGround,
) -> None:
    live(new_shared_ground, 2, 25)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("quarter", range(4))  # side by side: each life waits for machines
def test_x10_the_promise_is_kept_on_four_machines_through_many_lives(
    new_shared_ground: NewGround, quarter: int
) -> None:
    """In all as many as a home has."""
    live(new_shared_ground, 50, 40)
