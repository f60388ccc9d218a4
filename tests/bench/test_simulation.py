"""The model of a cell does as queues do: it is checked where the answer is known without it."""

import pytest

from bench.simulation.model import Costs, Shape, many_cells, rate_of_batch
from bench.simulation.whatif import SLOW_COMMITS, what_ifs

FREE = Costs(commit_s=1e-6, changes_s=1e-9, worker_s=1e-9, caller_s=1e-9)


def test_places_are_the_limit_where_nothing_else_costs() -> None:
    for workers in (1, 2, 4):
        rate = rate_of_batch(FREE, Shape(workers, 5), 500, callers=50, work_s=0.1)
        assert rate == pytest.approx(workers * 5 / 0.1, rel=0.02)


def test_a_worker_that_computes_is_the_limit_until_there_are_more() -> None:
    costs = Costs(commit_s=1e-6, changes_s=1e-9, worker_s=0.01, caller_s=1e-9)
    one = rate_of_batch(costs, Shape(1, 50), 1000, callers=50)
    two = rate_of_batch(costs, Shape(2, 50), 1000, callers=50)
    assert one == pytest.approx(100, rel=0.02), "a program does one thing at a time"
    assert two == pytest.approx(200, rel=0.1)


def test_workers_that_hear_of_the_tasks_of_others_add_up_less() -> None:
    costs = Costs(commit_s=1e-6, changes_s=1e-9, worker_s=0.01, caller_s=1e-9, bystander_s=0.005)
    rates = [rate_of_batch(costs, Shape(n, 1), 200, callers=50) for n in (1, 4)]
    assert rates[0] < rates[1] < 3 * rates[0]


def test_one_writer_at_a_time_is_the_limit_however_many_workers_there_are() -> None:
    """And what waits together shares a commit: alone, four commits of 10 ms allow 25 a second."""
    costs = Costs(commit_s=0.01, changes_s=1e-9, worker_s=1e-9, caller_s=1e-9)
    alone = rate_of_batch(costs, Shape(1, 1), 50, callers=1)
    assert alone == pytest.approx(25, rel=0.35)
    rates = [rate_of_batch(costs, Shape(n, 64), 4000, callers=64) for n in (1, 8)]
    assert rates[0] > 10 * alone
    assert rates[1] < 2 * rates[0]
    without = rate_of_batch(costs, Shape(8, 64, writers=9), 4000, callers=64)
    assert without > 2 * rates[1]


def test_what_is_the_limit_is_what_a_cell_carries_more_without() -> None:
    cell = Shape(2, 64, database_cores=1)

    def gains(costs: Costs) -> dict[str, float | None]:
        return {
            row.name.removeprefix("what if: "): row.ratio for row in what_ifs(costs, cell, 2000)
        }

    found = gains(Costs(commit_s=1e-6, changes_s=1e-9, worker_s=1e-9, caller_s=0, reads_s=0.01))
    assert found["2 cores of the database"] == pytest.approx(2, rel=0.1)
    assert found["no lock"] == pytest.approx(1, rel=0.1)
    assert found["4 workers"] == pytest.approx(1, rel=0.1)
    found = gains(Costs(commit_s=1e-6, changes_s=1e-9, worker_s=1e-9, caller_s=0))
    slowly = f"{SLOW_COMMITS}, no lock"
    assert (found[slowly] or 0) > (found[f"{SLOW_COMMITS}, 2 cores of the database"] or 0)


def test_one_machine_is_shared_by_all() -> None:
    costs = Costs(commit_s=1e-6, changes_s=0.004, worker_s=0.01, caller_s=0.006)
    here = rate_of_batch(costs, Shape(4, 64, one_machine=2), 1000, callers=64)
    assert 0.8 * 2 / 0.02 < here <= 2 / 0.02


def test_cells_add_up_and_waits_grow_near_the_limit() -> None:
    costs = Costs(commit_s=0.001, changes_s=0.004, worker_s=1e-4, caller_s=0)
    shape = Shape(2, 64)
    most = rate_of_batch(costs, shape, 2000, callers=500)

    def load(share: float, cells: int) -> float:
        found = many_cells(
            costs, shape, cells=cells, tasks_a_second=share * most * cells, owners=200 * cells,
            largest=0.05, work_s=0.05, for_s=4.0,
        )  # fmt: skip
        assert found.carried == pytest.approx(found.offered, rel=0.15)
        return sum(found.waits_s) / len(found.waits_s)

    assert load(0.9, 1) > load(0.2, 1)
    load(0.4, 5)
