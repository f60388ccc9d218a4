"""A3: a recycled pid is never taken for the job, and never signalled."""

import pytest

from tests.faults.apart import run_apart


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        "test_a3_a_job_that_died_unseen_is_not_mistaken_for_who_has_its_pid",
        "test_a3_stopping_a_job_that_died_unseen_signals_nobody",
        "test_a3_the_exit_code_counts_and_not_the_pid",
        "test_a3_stop_ends_what_goes_on_and_not_who_has_the_wrappers_pid",
    ],
)
def test_a3_whoever_has_the_pid_of_a_dead_job_is_left_alone(case: str) -> None:
    run_apart(f"work/process/on_recycled_pids.py::{case}", own_pids=True)
