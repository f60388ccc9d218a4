"""More workers: 1, 2 and 4 machines on one database, ours and Procrastinate alone.

Two loads. Work that waits (`sleep 0.2`, four at once on each machine) shows whether machines add up
while the database has room: the ratio is to one machine. Work that does nothing shows where the
limit is: on a machine with two cores that is the machine itself, so the processor time of the
database for a task is printed, which says how many tasks a second it could carry.
"""

from dataclasses import dataclass
from pathlib import Path

from bench.measure import Effort, Row
from bench.shared.database import Cost
from bench.shared.sides import WAIT_S, Ours, Start, TheirSide, both, rate
from bench.shared.workers import AT_ONCE

_MACHINES = (1, 2, 4)
_FEW = 4
"""Places of a machine for work that waits."""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
_SECONDS = 5.0
"""That a round takes, about: it has as many tasks as its warm-up says."""


@dataclass(frozen=True, slots=True)
class _Round:
    """What one of the two did with so many machines."""

    rate: float
    cost: Cost
    """Of one task is a part of it."""
    count: int
    connections: int

    def __str__(self) -> str:
        return (
            f"{self.cost.cpu_s / self.count * 1e3:.2f} ms of the database's processor for a task, "
            f"{self.cost.statements / self.count:.1f} statements, "
            f"{self.cost.commits / self.count:.1f} commits, "
            f"{self.cost.wal_bytes / self.count / 1024:.1f} KiB of log; "
            f"{self.connections} connections"
        )


async def run(effort: Effort, folder: Path) -> list[Row]:
    """A row for each number of machines and each load."""
    rows: list[Row] = []
    async with both(folder) as (ours, theirs):
        alone: tuple[float, float] | None = None
        for machines in _MACHINES:
            each = await _rounds(effort, ours, theirs, machines, waits=True)
            alone = alone or (each[0].rate, each[1].rate)
            growth = (
                f"to one machine {each[0].rate / alone[0]:.2f}, "
                f"Procrastinate {each[1].rate / alone[1]:.2f}; "
                f"there are places for {machines * _FEW / WAIT_S:g} /s"
            )
            rows.append(_row(f"work that waits, {machines} machines", *each, growth))
        for machines in _MACHINES:
            each = await _rounds(effort, ours, theirs, machines, waits=False)
            rows.append(_row(f"commands, {machines} machines", *each))
    return rows


async def _rounds(
    effort: Effort, ours: Ours, theirs: TheirSide, machines: int, *, waits: bool
) -> tuple[_Round, _Round]:
    at_once = _FEW if waits else AT_ONCE
    with ours.workers(machines, at_once=at_once):
        first = await _round(effort, ours, ours.waiting if waits else ours.command, machines)
    with theirs.workers(machines, at_once=at_once):
        start = theirs.waiting if waits else theirs.command
        return first, await _round(effort, theirs, start, machines)


async def _round(effort: Effort, side: Ours | TheirSide, start: Start, machines: int) -> _Round:
    warm_up = await rate(side, effort.count(20 * machines, quick=4 * machines), start)
    count = max(10, round(warm_up * (_SECONDS if not effort.quick else 1.0)))
    before = side.database.cost()
    found = await rate(side, count, start)
    return _Round(found, side.database.cost() - before, count, side.database.ask(_CONNECTIONS))


def _row(name: str, ours: _Round, theirs: _Round, *notes: str) -> Row:
    return Row(
        name,
        ours.rate,
        "/s",
        raw=theirs.rate,
        ratio=ours.rate / theirs.rate,
        notes=[*notes, f"ours: {ours}", f"Procrastinate: {theirs}"],
    )
