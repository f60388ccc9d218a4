"""Output of 100 running tasks, copied into the record while it is written: what the database bears.

Each task prints a line of 60 characters ten times a second, which no database can compress; a
second load begins with logs that are as large as they get (1.25 MiB): those are copied anew with
each line that is added. Beside it tasks that print nothing: the difference is what copying costs.
"""

import asyncio
from pathlib import Path

from backburner import Task
from bench.measure import Effort, Row
from bench.shared.database import Cost
from bench.shared.sides import Ours, both
from bench.waiting import until

_TALKS = "while :; do head -c 44 /dev/urandom | base64; sleep 0.1; done"
_FILLS = f"head -c 2000000 /dev/urandom | base64; {_TALKS}"
_SILENT = "sleep 600"


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row for each load."""
    tasks, seconds = effort.count(100), effort.count(15, quick=3)
    rows: list[Row] = []
    async with both(folder) as (ours, _):
        with ours.workers(1, at_once=2 * tasks):
            silent = await _cost(ours, tasks, seconds, _SILENT)
            for name, command in (("small logs", _TALKS), ("full logs", _FILLS)):
                cost = await _cost(ours, tasks, seconds, command)
                rows.append(
                    Row(
                        f"{tasks} tasks that print, {name}",
                        (cost.cpu_s - silent.cpu_s) / seconds * 100,
                        "% of a core",
                        notes=[
                            _said(cost, seconds),
                            f"while they are silent {_said(silent, seconds)}",
                        ],
                    )
                )
    return rows


async def _cost(ours: Ours, count: int, seconds: float, command: str) -> Cost:
    """What the database does meanwhile."""
    tasks = [await ours.sessions[n % len(ours.sessions)].run(command) for n in range(count)]
    await until(lambda: _all_run(ours, tasks), what="all tasks run")
    before = ours.database.cost()
    await asyncio.sleep(seconds)
    cost = ours.database.cost() - before
    await asyncio.gather(*(task.stop(force=True) for task in tasks))
    return cost


async def _all_run(ours: Ours, tasks: list[Task]) -> bool:
    running = "SELECT count(*) FROM backburner.task WHERE state = 'running'"
    return ours.database.ask(running) == len(tasks)


def _said(cost: Cost, seconds: float) -> str:
    return (
        f"{cost.commits / seconds:.0f} commits, {cost.wal_bytes / seconds / 1024:.0f} KiB of log"
        f" and {cost.cpu_s / seconds * 1e3:.0f} ms of the database's processor a second"
    )
