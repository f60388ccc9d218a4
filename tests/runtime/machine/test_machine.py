"""The promise, whatever happens: random starts, stops, kills, answers, restarts and clock jumps.

E4, E8, E10, E11, E12, D2, D6, X1, X2: each life is checked task by task at its end; `promise` says
for what.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.runtime.machine.machine import Machine


def live(new_home: Callable[[], Path], lives: int, steps: int) -> None:
    """So many lives, of so many steps each."""
    machine = type("Machine", (Machine,), {"new_home": staticmethod(new_home)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=lives,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            # The same steps may go well the next time: a smaller failure would take hours to find.
            phases=(Phase.generate,),
            database=None,
        ),
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_e10_e11_x1_x2_the_promise_is_kept_whatever_happens(new_home: Callable[[], Path]) -> None:
    live(new_home, 8, 25)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_e10_e11_x1_x2_the_promise_is_kept_through_many_lives(
    new_home: Callable[[], Path],
) -> None:
    live(new_home, 200, 40)
