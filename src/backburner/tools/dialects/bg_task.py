"""`bg_task`: BgTaskList, BgTaskOutput with a wait, BgTaskStop with force (C1 to C5).

Tools count as Python here: they are Python callables, closures among them (C4).
"""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backburner.model import clock
from backburner.model.clock import format_duration, rfc3339
from backburner.model.ending import spelling
from backburner.model.errors import NotFound, TimeIsUp
from backburner.model.states import Kind, State
from backburner.tools.dialects.tasks import (
    apart,
    found,
    in_lines,
    not_found,
    running_and_recent,
    shown_result,
    took,
)
from backburner.tools.seen import Answer, Hints, Offer, Parameter

if TYPE_CHECKING:
    from backburner.app import Session, Task

WAIT_S = 60.0
LAST_LINES = 100
"""What a wait that runs out gives of the output."""

KINDS = {
    Kind.SHELL: "bash",
    Kind.PYTHON: "python",
    Kind.TOOL: "python",
    Kind.AGENT: "subagent",
}

_LOST = "BgTaskList shows the tasks of this session"
_STREAMS = ("stdout", "stderr")


def offers(session: "Session") -> Sequence[Offer]:
    """The three tools."""
    tasks = BgTasks(session)
    reading = Hints(readonly=True, idempotent=True)
    task_id = Parameter("task_id", "string", "Of the task.", required=True)
    return [
        Offer(
            "BgTaskList",
            "The running and recent background tasks of this session, newest first. You are told"
            " when one ends: do not poll.",
            (),
            tasks.list,
            reading,
            parallel=True,
        ),
        Offer(
            "BgTaskOutput",
            "What a background task has printed so far and how it stands; with block, once it has"
            " ended or the timeout has passed.",
            (
                task_id,
                Parameter("block", "boolean", "Wait for its end; false unless given."),
                Parameter("timeout", "number", "Seconds to wait with block; 60 unless given."),
            ),
            tasks.output,
            reading,
            parallel=True,
        ),
        Offer(
            "BgTaskStop",
            "End a background task and everything that it has started. One of another session of"
            " the same user is ended when that session agrees.",
            (task_id, Parameter("force", "boolean", "Kill it at once; false unless given.")),
            tasks.stop,
            Hints(destructive=True),
        ),
    ]


async def start(
    session: "Session", command: str | Sequence[str], *, title: str | None = None
) -> "Task":
    """Start a shell job as this tool set has them: with its two streams apart (C2)."""
    return await session.run(command, title=title, separate_stderr=True)


class BgTasks:
    """The handlers, over one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def list(self, given: dict[str, Any]) -> Answer:  # noqa: ARG002 - it takes no arguments
        """BgTaskList."""
        tasks = await running_and_recent(self._session)
        if not tasks:
            return Answer("No background tasks in this session.", {"tasks": [], "total": 0})
        text = "\n".join([*in_lines(tasks, _line), f"{len(tasks)} in total"])
        return Answer(text, {"tasks": [_described(task) for task in tasks], "total": len(tasks)})

    async def output(self, given: dict[str, Any]) -> Answer:
        """BgTaskOutput."""
        task = await found(self._session, given["task_id"], remedy=_LOST)
        waited = 0.0
        if given.get("block") and not task.state.terminal:
            waited = max(0.0, float(given.get("timeout", WAIT_S)))
            try:
                await task.wait(waited)
            except TimeIsUp:
                await task.refresh()
        expired = bool(given.get("block")) and not task.state.terminal
        chunk = await task.output(last_lines=LAST_LINES if expired else None)
        if expired and task.state.terminal:  # just now
            expired, chunk = False, await task.output()
        out, error = apart(task, chunk)
        parts = [_header(task)]
        if expired:
            lines = f" Its last {LAST_LINES} lines:" if out or error else ""
            parts.append(f"It has not ended within {waited:g} s.{lines}")
        parts += [
            f"[{name}]\n{text.rstrip()}"
            for name, text in zip(_STREAMS, (out, error), strict=True)
            if text
        ]
        if not out and not error:
            parts.append("It printed nothing." if task.state.terminal else "No output yet.")
        if task.result is not None:
            parts.append(f"[result]\n{shown_result(task.result)}")
        data = {
            **_described(task),
            "exit_code": task.exit_code,
            "stdout": out,
            "stderr": error,
            "result": task.result,
            "timed_out": expired,
        }
        return Answer("\n".join(parts), data)

    async def stop(self, given: dict[str, Any]) -> Answer:
        """BgTaskStop."""
        reference, force = given["task_id"].strip(), given.get("force", False)
        task: Task | None = None
        with contextlib.suppress(NotFound):  # perhaps one of another session, which is to be asked
            task = await self._session.task(reference)
        if task is not None and task.state.terminal and not task.record.leftovers:
            return Answer(f"{task.id} is not running: {_status(task)}.", _described(task))
        try:
            stopped = await self._session.stop(reference, force=force)
        except NotFound:
            raise not_found(reference, _LOST) from None
        if not stopped.state.terminal:
            said = stopped.record.detail or f"{stopped.id} is to be stopped."
        elif stopped.state is State.CANCELED:
            said = f"{stopped.id} is stopped."
        else:
            said = f"{stopped.id} is not running: {_status(stopped)}."
        return Answer(said, _described(stopped))


def _described(task: "Task") -> dict[str, Any]:
    """A task as BgTaskList shows it (C1)."""
    record = task.record
    return {
        "id": task.id,
        "description": record.title,
        "kind": KINDS[record.kind],
        "status": _status(task),
        "started_at": None if record.started_at is None else rfc3339(record.started_at),
        "duration_s": round(record.elapsed_us(clock.now()) / clock.SECOND, 3),
    }


def _line(task: "Task") -> str:
    each = _described(task)
    return (
        f"{each['id']}  {each['kind']}  {each['status']}  started {each['started_at'] or 'not'}"
        f"  {format_duration(each['duration_s'])}  {each['description']}"
    )


def _status(task: "Task") -> str:
    return spelling(task.state, task.error).bg_task if task.state.terminal else "running"


def _header(task: "Task") -> str:
    record = task.record
    parts = [f"{task.id} ({record.title})", f"status: {_status(task)}", f"duration: {took(task)}"]
    if record.exit_code is not None:
        parts.append(f"exit code: {record.exit_code}")
    if record.error is not None:
        parts.append(f"error: {record.error.message}")
    if record.question is not None:
        parts.append(f"it asks: {record.question.text}")
    return "\n".join(parts)
