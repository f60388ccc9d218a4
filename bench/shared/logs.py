"""Output of 100 running tasks, copied into the record while it is written: what the database bears.

Each task prints a line of 60 characters ten times a second, which no database can compress; a
second load has logs that are as large as they get (1.25 MiB) when it is measured. Beside them tasks
that print nothing: the difference is what copying costs.
"""

import asyncio
import sys
from pathlib import Path

from backburner import Task
from bench.measure import Effort, Row
from bench.shared.database import Cost
from bench.shared.sides import Ours, both
from bench.waiting import until

# One process for a task: ten starts a second of each would be all that is measured.
_PRINTS = """
import base64, os, time
for _ in range({first}):
    print(base64.b64encode(os.urandom(44)).decode())
while True:
    time.sleep(0.1)
    print(base64.b64encode(os.urandom(44)).decode(), flush=True)
"""
_TALKS = [sys.executable, "-S", "-c", _PRINTS.format(first=0)]
_FILLS = [sys.executable, "-S", "-c", _PRINTS.format(first=40_000)]
_SILENT = ["sleep", "600"]
_FULL = 1024 * 1024
_RUNNING = "SELECT count(*) FROM backburner.task WHERE state = 'running'"
_COPIED = (
    "SELECT count(*) FROM backburner.task t WHERE state = 'running' AND "
    "(SELECT sum(total) FROM backburner.mirror m WHERE m.task = t.seq) > {bytes}"
)
_HELD = (
    "SELECT coalesce(max(held), 0) FROM (SELECT sum(length(p.data)) AS held "
    "FROM backburner.mirror_piece p JOIN backburner.task t ON t.seq = p.task "
    "WHERE t.state = 'running' GROUP BY p.task) AS x"
)


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row for each load."""
    tasks, seconds = effort.count(100), effort.count(15, quick=3)
    rows: list[Row] = []
    async with both(folder) as (ours, _):
        with ours.workers(1, at_once=2 * tasks):
            silent, _ = await _cost(ours, tasks, seconds, _SILENT)
            for name, command, least in (("small logs", _TALKS, 1), ("full logs", _FILLS, _FULL)):
                cost, held = await _cost(ours, tasks, seconds, command, least)
                rows.append(
                    Row(
                        f"{tasks} tasks that print, {name}",
                        (cost.cpu_s - silent.cpu_s) / seconds * 100,
                        "% of a core",
                        notes=[
                            cost.a_second(seconds),
                            f"while they are silent {silent.a_second(seconds)}",
                            f"the record holds at most {held / 2**20:.2f} MiB of a task's output",
                        ],
                    )
                )
    return rows


async def _cost(
    ours: Ours, count: int, seconds: float, command: list[str], least: int = 0
) -> tuple[Cost, int]:
    """What the database does meanwhile, from when on the record has so much of each task; and how

    much it has of one at most.
    """
    tasks = [await ours.sessions[n % len(ours.sessions)].run(command) for n in range(count)]

    async def all_run() -> bool:
        question = _COPIED.format(bytes=least) if least else _RUNNING
        return ours.database.ask(question) == len(tasks)

    await until(all_run, what="all tasks run")
    before = ours.database.cost()
    await asyncio.sleep(seconds)
    cost, held = ours.database.cost() - before, int(ours.database.ask(_HELD))
    await asyncio.gather(*(_end(task) for task in tasks))
    return cost, held


async def _end(task: Task) -> None:
    await task.stop(force=True)
