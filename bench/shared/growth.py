"""More workers: 1, 2 and 4 machines on one database, ours and Procrastinate alone.

Two loads. Work that waits (`sleep 0.2`, four at once on each machine) shows whether machines add up
while the database has room: the ratio is to one machine. Work that does nothing shows where the
limit is: on a machine with two cores that is the machine itself, so the processor time of the
database for a task is printed, which says how many tasks a second it could carry.
"""

from pathlib import Path

from bench.measure import Effort, Row
from bench.shared.sides import WAIT_S, Ours, TheirSide, both, rate

_MACHINES = (1, 2, 4)
_AT_ONCE = 4


async def run(effort: Effort, folder: Path) -> list[Row]:
    """A row for each number of machines and each load."""
    rows: list[Row] = []
    async with both(folder) as (ours, theirs):
        rows += await _waiting(effort, ours, theirs)
        rows += await _nothing(effort, ours, theirs)
    return rows


async def _waiting(effort: Effort, ours: Ours, theirs: TheirSide) -> list[Row]:
    rates: list[tuple[float, float]] = []
    for machines in _MACHINES:
        count = effort.count(40 * machines * _AT_ONCE // 4)
        with ours.workers(machines, at_once=_AT_ONCE):
            our_rate = await rate(ours, count, ours.waiting)
        with theirs.workers(machines, at_once=_AT_ONCE):
            rates.append((our_rate, await rate(theirs, count, theirs.waiting)))
    return [
        _row_of_waiting(machines, ours, theirs, rates[0])
        for machines, (ours, theirs) in zip(_MACHINES, rates, strict=True)
    ]


def _row_of_waiting(machines: int, ours: float, theirs: float, alone: tuple[float, float]) -> Row:
    growth = f"to one machine {ours / alone[0]:.2f}, Procrastinate {theirs / alone[1]:.2f}"
    places = f"there are places for {machines * _AT_ONCE / WAIT_S:g} /s"
    return Row(
        f"work that waits, {machines} machines",
        ours,
        "/s",
        raw=theirs,
        ratio=ours / theirs,
        notes=[f"{growth}; {places}"],
    )


async def _nothing(effort: Effort, ours: Ours, theirs: TheirSide) -> list[Row]:
    rows: list[Row] = []
    count = effort.count(600)
    for machines in _MACHINES:
        with ours.workers(machines):
            await rate(ours, effort.count(100), ours.command)
            before = ours.database.cost()
            our_rate = await rate(ours, count, ours.command)
            our_cost = ours.database.cost() - before
        with theirs.workers(machines):
            await rate(theirs, effort.count(100), theirs.command)
            before = theirs.database.cost()
            their_rate = await rate(theirs, count, theirs.command)
            their_cost = theirs.database.cost() - before
        note = "; ".join(
            f"{name}: {cost.cpu_s / count * 1e3:.2f} ms of the database's processor for a task, "
            f"{cost.commits / count:.1f} commits, {cost.wal_bytes / count / 1024:.1f} KiB of log"
            for name, cost in (("ours", our_cost), ("Procrastinate", their_cost))
        )
        rows.append(
            Row(
                f"commands, {machines} machines",
                our_rate,
                "/s",
                raw=their_rate,
                ratio=our_rate / their_rate,
                notes=[note],
            )
        )
    return rows
