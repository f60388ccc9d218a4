"""5,000 tasks that do nothing, by 64 callers: created, claimed and finished in the record.

Three raw limits, all bare apsw programs with the same 64 callers and the same three durable commits
for each task, each of which waits for the one before:
each apart  one table, an insert and two updates, a commit for each: the program one would write
plain rows  the same rows, and what waits is committed together, as we do: what SQLite can do at all
same rows   committed together, into our tables with their indexes and constraints, guarded updates,
            three events and a signal, as plain statements: what is left is the price of our code
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.home import Home
from backburner.model.ids import new_id
from backburner.model.states import Kind
from backburner.model.task import NewTask, Place
from backburner.store.sqlite.store import SqliteStore, open_store
from backburner.work.process.identity import boot_id
from bench import bare
from bench.measure import Effort, Pairs, Row, Target, in_turn

CALLERS = 64
TARGET = Target("at least", 0.4)

Program = Callable[[bare.BareWriter, int], Awaitable[None]]
"""One task of a bare program, by its number."""

_CREATE = """
INSERT INTO task (id, owner, session, kind, title, spec, state, created_at, events)
VALUES (:id, 'local', 'bench', 'tool', :title, '{}', 'queued', :now, 1);
INSERT INTO event (task, number, at, kind, data)
VALUES (last_insert_rowid(), 1, :now, 'created', '{}')"""

_CLAIM = """
UPDATE task SET state = 'running', started_at = :now, boot_id = 'boot', started_boot = :now,
                events = events + 1
WHERE id = :id AND attempt = 1 AND state = 'queued';
INSERT INTO event (task, number, at, kind, data)
SELECT seq, events, :now, 'started', '{"attempt":1}' FROM task WHERE id = :id"""

_FINISH = """
UPDATE task SET state = 'succeeded', finished_at = :now, events = events + 1
WHERE id = :id AND attempt = 1 AND state IN ('running', 'input_required');
INSERT INTO event (task, number, at, kind, data)
SELECT seq, events, :now, 'finished', '{"state":"succeeded"}' FROM task WHERE id = :id;
INSERT INTO signal (key, task, owner, session, kind, text, data, state, channel, created_at)
SELECT id || ':end', seq, owner, session, 'completed', title || ' finished after 0.0s',
       '{"state":"succeeded"}', 'pending', 'inbox', :now FROM task WHERE id = :id"""


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row for each raw limit."""
    count = effort.count(5000)
    store = open_store(folder / "home", boot_id())
    await open_store(folder / "same", boot_id()).close()  # makes our tables
    same = bare.durable(Path(Home(folder / "same").database), "foreign_keys = ON")
    programs: dict[str, tuple[bare.BareWriter, Program]] = {
        "each apart": (
            bare.BareWriter(bare.connect(folder / "apart.db"), together=False),
            _plain_task,
        ),
        "plain rows": (bare.BareWriter(bare.connect(folder / "bare.db")), _plain_task),
        "same rows": (bare.BareWriter(same), _same_task),
    }
    rates: dict[str, list[float]] = {name: [] for name in programs}

    async def ours() -> float:
        return await rate(count, lambda number: whole_task(store, number))

    async def every_raw() -> float:
        for name, (writer, program) in programs.items():
            rates[name].append(await rate(count, partial(program, writer)))
        return 0.0

    try:
        pairs = await in_turn(ours, every_raw, effort.rounds)
    finally:
        await store.close()
        for writer, _ in programs.values():
            writer.close()
    return [
        Pairs(pairs.ours, raw[1:]).row(  # without the round that warms up
            f"throughput, {CALLERS} callers, {name}", "/s", target=TARGET
        )
        for name, raw in rates.items()
    ]


async def whole_task(store: SqliteStore, number: int) -> None:
    """The life of a task as the record sees it."""
    task_id = new_id()
    new = NewTask(task_id, "local", "bench", Kind.TOOL, f"no-op {number}", {"number": number})
    await store.create(new, limit=CALLERS)
    await store.claim(task_id, 1, Place(boot_id(), clock.boot_now()))
    if await store.finish(task_id, 1, Ending.succeeded()) is None:
        raise RuntimeError(f"{task_id} was not finished")


async def _plain_task(writer: bare.BareWriter, number: int) -> None:
    task_id = new_id()
    spec = f'{{"number":{number}}}'
    values = (task_id, "local", "bench", "tool", f"no-op {number}", spec, clock.now())
    await writer.write(bare.INSERT, values)
    await writer.write(bare.CLAIM, (clock.now(), task_id))
    await writer.write(bare.FINISH, (clock.now(), task_id))


async def _same_task(writer: bare.BareWriter, number: int) -> None:
    task_id = new_id()
    title = f"no-op {number}"
    await writer.write(_CREATE, {"id": task_id, "title": title, "now": clock.now()})
    await writer.write(_CLAIM, {"id": task_id, "now": clock.now()})
    await writer.write(_FINISH, {"id": task_id, "now": clock.now()})


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
