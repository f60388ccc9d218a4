"""More workers: 1, 2 and 4 machines on one database, ours and Procrastinate alone.

Two loads. Work that waits (`sleep 0.2`, four at once on each machine) shows whether machines add up
while the database has room: the ratio is to one machine. Work that does nothing shows where the
limit is: on a machine with two cores that is the machine itself, so the processor time of the
database for a task is printed, which says how many tasks a second it could carry.
"""

from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.measure import Effort, Pairs, Row, Target, in_turn
from bench.shared.database import Cost
from bench.shared.sides import WAIT_S, Ours, Side, Start, TheirSide, both, rate
from bench.shared.workers import AT_ONCE

_MACHINES = (1, 2, 4)
_FEW = 4
"""Places of a machine for work that waits."""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
_AT_LEAST = Target("at least", 0.5)
"""Of work that waits. Commands share the cores of this machine: `machines` has a target for them,
with one worker."""
_SECONDS = 3.0
"""That a round takes, about: it has as many tasks as its warm-up says."""


@dataclass(slots=True)
class _Machines:
    """What one of the two has done in its rounds with so many machines, after the warm-up."""

    side: Side
    start: Start
    few: int
    """Tasks of the warm-up."""
    seconds: float
    count: int = 0
    """Tasks of a round."""
    tasks: int = 0
    cost: Cost = field(default_factory=Cost)

    async def round(self) -> float:
        """Tasks a second."""
        if self.count == 0:
            warm_up = await rate(self.side, self.few, self.start)
            self.count = max(10, round(warm_up * self.seconds))
            return warm_up
        before = self.side.database.cost()
        found = await rate(self.side, self.count, self.start)
        self.cost += self.side.database.cost() - before
        self.tasks += self.count
        return found

    def __str__(self) -> str:
        return (
            f"{self.cost.cpu_s / self.tasks * 1e3:.2f} ms of the database's processor for a task, "
            f"{self.cost.statements / self.tasks:.1f} statements, "
            f"{self.cost.commits / self.tasks:.1f} commits, "
            f"{self.cost.wal_bytes / self.tasks / 1024:.1f} KiB of log; "
            f"{self.side.database.ask(_CONNECTIONS)} connections"
        )


async def run(effort: Effort, folder: Path) -> list[Row]:
    """A row for each number of machines and each load."""
    rows: list[Row] = []
    async with both(folder) as (ours, theirs):
        alone: Pairs | None = None
        for machines in _MACHINES:
            pairs, notes = await _rounds(effort, ours, theirs, machines, waits=True)
            alone = alone or pairs
            growth = (
                f"to one machine {median(pairs.ours) / median(alone.ours):.2f}, "
                f"Procrastinate {median(pairs.raw) / median(alone.raw):.2f}; "
                f"there are places for {machines * _FEW / WAIT_S:g} /s"
            )
            name = f"work that waits, {machines} machines"
            rows.append(pairs.row(name, "/s", target=_AT_LEAST, notes=[growth, *notes]))
        for machines in _MACHINES:
            pairs, notes = await _rounds(effort, ours, theirs, machines, waits=False)
            rows.append(pairs.row(f"commands, {machines} machines", "/s", notes=notes))
    return rows


async def _rounds(
    effort: Effort, ours: Ours, theirs: TheirSide, machines: int, *, waits: bool
) -> tuple[Pairs, list[str]]:
    at_once = _FEW if waits else AT_ONCE
    few = effort.count(20 * machines, quick=4 * machines)
    seconds = 1.0 if effort.quick else _SECONDS
    with ours.workers(machines, at_once=at_once), theirs.workers(machines, at_once=at_once):
        each = [
            _Machines(side, side.waiting if waits else side.command, few, seconds)
            for side in (ours, theirs)
        ]
        pairs = await in_turn(each[0].round, each[1].round, effort.rounds)
        return pairs, [f"ours: {each[0]}", f"Procrastinate: {each[1]}"]
