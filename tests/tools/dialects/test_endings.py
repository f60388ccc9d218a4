"""A2, C1, D3, E10: one end, five spellings; every cell of the table, through tasks that end so."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner, ErrorKind, Session, State, Task
from backburner.model import clock, ids
from backburner.model.ending import Ending
from backburner.model.states import Kind
from backburner.model.task import NewTask, Place
from backburner.model.worker import new_worker_id
from backburner.runtime.runs.lock import WorkerLock
from backburner.work.process.identity import boot_id
from tests.faults.victims import unique_seconds

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@dataclass(frozen=True)
class Row:
    """What happened, as the contract spells it in each dialect."""

    state: State
    kind: ErrorKind | None
    job: str
    flag: str | None
    code: int | None
    bg_task: str
    check: str
    says: str
    """The word for it in the text of `manage_bg_jobs` (A5)."""


FAILED = State.FAILED
# fmt: off
TABLE = {
    "well": Row(State.SUCCEEDED, None, "done", None, 0, "completed", "completed", "finished"),
    "exit": Row(FAILED, ErrorKind.EXIT, "failed", None, 3, "failed", "error", "failed: exit code"),
    "error": Row(FAILED, ErrorKind.ERROR, "failed", None, None, "failed", "error", "failed: Value"),
    "stopped": Row(State.CANCELED, None, "failed", "killed", -1, "stopped", "cancelled",
                   "was killed"),
    "timeout": Row(FAILED, ErrorKind.TIMEOUT, "failed", "timed_out", -1, "failed", "error",
                   "timed out: "),
    "killed": Row(FAILED, ErrorKind.KILLED, "failed", "died", -1, "failed", "error", "died: "),
    "orphaned": Row(FAILED, ErrorKind.ORPHANED, "failed", "died", -1, "failed", "error", "died: "),
    "spawn": Row(FAILED, ErrorKind.SPAWN, "failed", "died", -1, "failed", "error", "died: "),
}
# fmt: on


async def recorded(bb: Backburner, session: Session, ending: Ending, *, parked: bool) -> Task:
    """A call of a tool that its application has not brought to this end."""
    spec: dict[str, Any] = {"tool": "crawl", "arguments": {}, "log": [1024, 1024]}
    new = NewTask(ids.new_id(), session.scope.owner, session.name, Kind.TOOL, "Crawl", spec)
    place = Place(boot_id(), clock.boot_now(), 1, worker=new_worker_id())
    assert place.worker is not None
    alive = WorkerLock(bb.home, place.worker)  # else whoever looks after the dead ends it before us
    try:
        task, _ = await bb.store.begin(new, place, limit=None, parked=parked)
        assert await bb.store.finish(task.id, task.attempt, ending) is not None
    finally:
        alive.release()
    return await session.task(task.id)


async def stopped(bb: Backburner, session: Session) -> Task:
    task = await session.run(f"sleep {unique_seconds()}")
    return await task.stop(force=True)


async def orphaned(bb: Backburner, session: Session) -> Task:
    ending = Ending.failed(ErrorKind.ORPHANED, "its application died")
    return await recorded(bb, session, ending, parked=False)


REALLY: dict[str, Callable[[Backburner, Session], Awaitable[Task]]] = {
    "well": lambda _, session: session.run("true"),
    "exit": lambda _, session: session.run("exit 3"),
    "error": lambda _, session: session.call("tests.tools.dialects.functions:fails"),
    "stopped": stopped,
    "timeout": lambda _, session: session.run(f"sleep {unique_seconds()}", max_runtime=0.1),
    "killed": lambda _, session: session.run("kill -KILL $$"),
    "orphaned": orphaned,
    "spawn": lambda _, session: session.run(["/does/not/exist"]),
}
"""Tasks that really end so, but for the death of a worker, which is written into the record."""


async def call(session: Session, dialect: str, name: str, **arguments: Any) -> dict[str, Any]:
    return (await session.toolset(dialect=dialect).call(name, arguments)).data


@pytest.mark.parametrize("happened", TABLE)
async def test_a2_c1_the_end_of_a_task_in_the_words_of_each_dialect(
    shared_home: Path, happened: str
) -> None:
    row = TABLE[happened]
    async with Backburner.open(shared_home) as bb:
        session = bb.session(f"ends {happened}")
        task = await (await REALLY[happened](bb, session)).wait(30)
        assert (task.state, task.error and task.error.kind) == (row.state, row.kind)

        tools = session.toolset(dialect="manage_bg_jobs")
        job = await tools.call("manage_bg_jobs", {"action": "output", "job_id": task.id})
        flags = {name: job.data[name] for name in ("killed", "timed_out", "died")}
        assert (job.data["status"], job.data["exit_code"]) == (row.job, row.code)
        assert [name for name, value in flags.items() if value] == ([row.flag] if row.flag else [])
        assert f" {row.says}" in job.text

        assert (await call(session, "bg_task", "BgTaskList"))["tasks"][0]["status"] == row.bg_task
        output = await call(session, "bg_task", "BgTaskOutput", task_id=task.id)
        assert output["status"] == row.bg_task
        assert output["exit_code"] == (row.code if row.code != -1 else None)


@pytest.mark.parametrize("happened", TABLE)
async def test_d3_the_end_of_a_parked_call(shared_home: Path, happened: str) -> None:
    row = TABLE[happened]
    endings = {"well": Ending.exited(0), "exit": Ending.exited(3), "stopped": Ending.canceled()}
    if (ending := endings.get(happened)) is None:
        assert row.kind is not None
        ending = Ending.failed(row.kind, "because")
    async with Backburner.open(shared_home) as bb:
        session = bb.session(f"parked {happened}")
        task = await recorded(bb, session, ending, parked=True)
        data = await call(
            session, "check_background_tool", "check_background_tool", background_id=task.id
        )
        assert (data["status"], data["tool"]) == (row.check, "crawl")
        if row.check == "error":
            assert data["output"] == (ending.error.message if ending.error else None)
