"""5,000 tasks that do nothing, by 64 callers: created, claimed and finished in the record.

The raw limit is a bare apsw program with the same three durable commits for each task, each of
which waits for the one before, the same 64 callers and the same group commit.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.ids import new_id
from backburner.model.states import Kind
from backburner.model.task import NewTask, Place
from backburner.store.sqlite.store import SqliteStore, open_store
from backburner.work.process.identity import boot_id
from bench import bare
from bench.measure import Effort, Row, Target, in_turn

CALLERS = 64
TARGET = Target("at least", 0.4)


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row."""
    count = effort.count(5000)
    store = open_store(folder / "home", boot_id())
    writer = bare.BareWriter(folder / "bare.db")

    async def ours() -> float:
        return await rate(count, lambda number: whole_task(store, number))

    async def raw() -> float:
        return await rate(count, lambda number: bare_task(writer, number))

    try:
        pairs = await in_turn(ours, raw, effort.rounds)
    finally:
        await store.close()
        writer.close()
    return [pairs.row(f"throughput, {CALLERS} callers", "tasks/s", target=TARGET)]


async def whole_task(store: SqliteStore, number: int) -> None:
    """The life of a task as the record sees it."""
    task_id = new_id()
    new = NewTask(task_id, "local", "bench", Kind.TOOL, f"no-op {number}", {"number": number})
    await store.create(new, limit=CALLERS)
    await store.claim(task_id, 1, Place(boot_id(), clock.boot_now()))
    if await store.finish(task_id, 1, Ending.succeeded()) is None:
        raise RuntimeError(f"{task_id} was not finished")


async def bare_task(writer: bare.BareWriter, number: int) -> None:
    """The same three commits, bare."""
    task_id = new_id()
    spec = f'{{"number":{number}}}'
    values = (task_id, "local", "bench", "tool", f"no-op {number}", spec, clock.now())
    await writer.write(bare.INSERT, values)
    await writer.write(bare.CLAIM, (clock.now(), task_id))
    await writer.write(bare.FINISH, (clock.now(), task_id))


async def rate(count: int, work: Callable[[int], Awaitable[None]], callers: int = CALLERS) -> float:
    """How many a second, when so many callers do it at once."""

    async def caller(numbers: Iterator[int]) -> None:
        for number in numbers:
            await work(number)

    shared = iter(range(count))
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(caller(shared))
    return count / (time.perf_counter() - began)
