"""`check_background_tool`: what became of a call that outlived its budget (D2 to D5).

It is offered beside the tools that it checks and has no budget of its own, or it would park itself.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from backburner.model import clock
from backburner.model.clock import format_duration
from backburner.model.ending import spelling
from backburner.model.errors import InvalidArguments, TimeIsUp
from backburner.model.states import State
from backburner.tools.canonical import WAIT_MAX_S
from backburner.tools.dialects.tasks import (
    found,
    in_lines,
    not_found,
    parked,
    shown_result,
    took,
)
from backburner.tools.seen import Answer, Hints, Offer, Parameter

if TYPE_CHECKING:
    from backburner.app import Session, Task

NAME = "check_background_tool"
WAIT_S = 60.0
_LOST = "list=true shows every parked call of this session"

Status = Literal["completed", "still_running", "cancelled", "error"]


class BackgroundToolStatus(TypedDict):
    """How one parked call stands."""

    type: Literal["background_tool_status"]
    message: str
    session_id: str
    status: Status
    tool: str
    background_id: str
    output: Any
    """Its result; of one that raised, the type and the text of that; None while it runs."""
    waited_seconds: float


class BackgroundToolListEntry(TypedDict):
    """One line of a list."""

    background_id: str
    tool: str
    age_seconds: float
    done: bool


class BackgroundToolList(TypedDict):
    """Every parked call of a session, newest first."""

    type: Literal["background_tool_list"]
    message: str
    session_id: str
    tasks: list[BackgroundToolListEntry]


def offers(session: "Session") -> Sequence[Offer]:
    """The one tool."""
    return [
        Offer(
            NAME,
            "The result of a tool call that was parked because it took longer than its budget, or"
            " how it stands. It waits for the end, so call it once instead of in a loop.",
            (
                Parameter("background_id", "string", "Of the parked call; not needed for a list."),
                Parameter("wait_seconds", "number", "0 to 540; 60 unless given."),
                Parameter("cancel", "boolean", "End the call instead of waiting for it."),
                Parameter("list", "boolean", "List every parked call of this session."),
            ),
            ParkedCalls(session).check,
            Hints(destructive=True),
        )
    ]


class ParkedCalls:
    """The handler, over one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def check(self, given: dict[str, Any]) -> Answer:
        """What the model calls."""
        if given.get("list"):
            return await self._list()
        if "background_id" not in given:
            raise InvalidArguments(f"{NAME}: background_id is missing", remedy=_LOST)
        task = await found(self._session, given["background_id"], remedy=_LOST)
        if task.record.parked_at is None:
            raise not_found(given["background_id"], _LOST)  # a task, and no parked call
        if given.get("cancel"):
            if not task.state.terminal:
                await task.stop()
            return self._answer(task, canceling=True)
        return self._answer(task, waited=await _waited(task, given.get("wait_seconds", WAIT_S)))

    async def _list(self) -> Answer:
        tasks = await parked(self._session)
        entries = [_entry(task) for task in tasks]
        text = "\n".join(in_lines(tasks, _line)) or "No call of this session was parked."
        listed: BackgroundToolList = {
            "type": "background_tool_list",
            "message": text,
            "session_id": self._session.name,
            "tasks": entries,
        }
        return Answer(text, {**listed})

    def _answer(self, task: "Task", *, waited: float = 0.0, canceling: bool = False) -> Answer:
        record = task.record
        output: Any = task.result
        if record.error is not None and output is None:
            output = record.error.message
        status: Status
        if task.state.terminal:
            status = cast("Status", spelling(task.state, task.error).check_background_tool)
            message = _ended(task)
        elif canceling:  # it was only played
            status, message = "cancelled", record.detail or ""
        else:
            status, message = "still_running", _running(task)
        answer: BackgroundToolStatus = {
            "type": "background_tool_status",
            "message": message,
            "session_id": record.session,
            "status": status,
            "tool": _tool(task),
            "background_id": task.id,
            "output": output,
            "waited_seconds": round(waited, 3),
        }
        text = message if task.result is None else f"{message}\n{shown_result(task.result)}"
        return Answer(text, {**answer}, is_error=status == "error")


def clamped(seconds: float) -> float:
    """Within what may be waited for in one call (D3)."""
    return min(max(float(seconds), 0.0), WAIT_MAX_S)


async def _waited(task: "Task", seconds: float) -> float:
    """Wait for the end; answers for how long."""
    if task.state.terminal:
        return 0.0
    began = time.monotonic()
    try:
        await task.wait(clamped(seconds))
    except TimeIsUp:
        await task.refresh()
    return time.monotonic() - began


def _entry(task: "Task") -> BackgroundToolListEntry:
    record = task.record
    age = max(0, clock.now() - (record.started_at or record.created_at)) / clock.SECOND
    return {
        "background_id": task.id,
        "tool": _tool(task),
        "age_seconds": round(age, 3),
        "done": task.state.terminal,
    }


def _line(task: "Task") -> str:
    each = _entry(task)
    age, done = format_duration(each["age_seconds"]), "done" if each["done"] else "still running"
    return f"{each['background_id']}  {each['tool']}  {age}  {done}"


def _tool(task: "Task") -> str:
    return task.record.spec.get("tool", task.record.title)


def _ended(task: "Task") -> str:
    record = task.record
    if record.state is State.SUCCEEDED:
        summary = f": {record.summary}" if record.summary else ""
        return f"{_tool(task)} ended well after {took(task)}{summary}"
    if record.state is State.CANCELED:
        return f"{_tool(task)} was cancelled after {took(task)}"
    why = record.error.message if record.error else ""
    return f"{_tool(task)} failed after {took(task)}: {why}"


def _running(task: "Task") -> str:
    record = task.record
    if record.question is not None:
        return f"{_tool(task)} asks: {record.question.text}"
    detail = f": {record.detail}" if record.detail else ""
    return (
        f"{_tool(task)} has been running for {took(task)}{detail}. You are told when it ends: go"
        " on, do not call it again."
    )
