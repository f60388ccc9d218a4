"""What limits a cell: how much more it carries when one thing at a time is otherwise.

Of the model alone, with the costs that were measured: no one of them says by itself which limit is
met first. The column `raw limit` is what the cell carries without the change.
"""

from dataclasses import replace

from bench.measure import Row
from bench.simulation.model import Costs, Shape, rate_of_batch

_CALLERS = 2000
_SLOW_COMMIT_S = 0.005
"""A disk behind a network, or a replica in the next building that has to confirm."""
SLOW_COMMITS = f"commits that wait {_SLOW_COMMIT_S * 1e3:g} ms"


def at_most(costs: Costs, cell: Shape, count: int) -> float:
    """Tasks a second of a cell that always has more to do, from so many tasks."""
    return rate_of_batch(costs, cell, count, callers=_CALLERS)


def what_ifs(costs: Costs, cell: Shape, count: int) -> list[Row]:
    """A row for each; first as commits are, then as they would be where they are slow."""
    slow = replace(costs, commit_s=_SLOW_COMMIT_S)
    unheard = replace(costs, bystander_s=0.0, bystander_reads_s=0.0)
    more_cores = replace(cell, database_cores=2 * cell.database_cores)
    no_lock = replace(cell, writers=cell.workers + 1)  # one in each process, callers included
    more, fewer = (replace(cell, workers=n) for n in (2 * cell.workers, cell.workers // 2))
    cores, lock = f"{more_cores.database_cores} cores of the database", "no lock"
    most, slowly = (at_most(each, cell, count) for each in (costs, slow))
    return [
        _row(name, at_most(these, shape, count), beside)
        for name, these, shape, beside in (
            (cores, costs, more_cores, most),
            (lock, costs, no_lock, most),
            ("no worker that hears of the commits of others", unheard, cell, most),
            (f"{more.workers} workers", costs, more, most),
            (f"{fewer.workers} workers", costs, fewer, most),
            (SLOW_COMMITS, slow, cell, most),
            (f"{SLOW_COMMITS}, {cores}", slow, more_cores, slowly),
            (f"{SLOW_COMMITS}, {lock}", slow, no_lock, slowly),
        )
    ]


def _row(name: str, carried: float, beside: float) -> Row:
    return Row(f"what if: {name}", carried, "/s", raw=beside, ratio=carried / beside)
