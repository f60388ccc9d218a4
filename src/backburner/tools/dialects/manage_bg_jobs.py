"""`manage_bg_jobs`: one tool to list, read and kill (A2 to A9); `chat` has what starts jobs.

Every task of the session is a job here, whatever kind of work it is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backburner.model import clock
from backburner.model.ending import JobSpelling, spelling
from backburner.model.errors import InvalidArguments
from backburner.model.signals import SignalState, end_key
from backburner.model.states import State
from backburner.model.task import preview
from backburner.runtime.followup import DELIBERATE
from backburner.tools.dialects.tasks import found, home_of, in_lines, running_and_recent, took
from backburner.tools.seen import Answer, Hints, Offer, Parameter
from backburner.work.shown import shown_work

if TYPE_CHECKING:
    from backburner.app import Session, Task

NAME = "manage_bg_jobs"

ALIASES = {
    "list": ("jobs", "ps", "status", "ls"),
    "output": ("read", "log", "logs", "tail", "cat"),
    "kill": ("stop", "cancel", "terminate", "end"),
}
"""What else models call the three actions."""

_ACTION_OF = {name: action for action, more in ALIASES.items() for name in (action, *more)}
_COMMAND_CHARS = 2_000
_REASON_CHARS = 500
"""Of an error or a question in the line of a job, of which there may be many."""
_RUNNING = JobSpelling("running")
_NOTHING = "There are no background jobs in this session."
_LOST = "action list shows the jobs of this session"


def offers(session: "Session") -> Sequence[Offer]:
    """The one tool."""
    jobs = Jobs(session)
    return [
        Offer(
            NAME,
            "Background jobs of this chat: list them, read the output of one, or kill one. You are"
            " told when a job ends, so call this when the user asks about one, not to poll. Never"
            " print tool syntax at the user.",
            (
                Parameter("action", "string", "list, output or kill.", required=True),
                Parameter("job_id", "string", "Of the job; needed for output and kill."),
            ),
            jobs.manage,
            Hints(destructive=True),
        )
    ]


class Jobs:
    """The actions, over one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def manage(self, given: dict[str, Any]) -> Answer:
        """What the model calls."""
        action = _ACTION_OF.get(given["action"].strip().lower())
        if action is None:
            raise InvalidArguments(
                f"{NAME}: {given['action'][:40]!r} is no action",
                remedy=f"use {', '.join(ALIASES)}",
            )
        if "job_id" not in given:
            if action != "list":
                raise InvalidArguments(f"{NAME}: {action} needs job_id", remedy=_LOST)
            return self.listed(await running_and_recent(self._session))
        task = await found(self._session, given["job_id"], remedy=_LOST)
        match action:
            case "list":
                return self.listed([task])
            case "output":
                return await self.output(task)
            case _:
                return await self.kill(task)

    def listed(self, tasks: "Sequence[Task]") -> Answer:
        """These, in a line each."""
        text = "\n".join(in_lines(tasks, sentence)) or _NOTHING
        return Answer(text, {"jobs": [job_record(task) for task in tasks]})

    async def output(self, task: "Task") -> Answer:
        """All that there is, its head and tail where that is long (A7)."""
        chunk = await task.output()
        printed = "\n".join(part.rstrip() for part in (chunk.text, chunk.stderr_text or "") if part)
        nothing = "It printed nothing." if task.state.terminal else "It has printed nothing yet."
        return Answer(
            f"{sentence(task)}\n{printed or nothing}", {**job_record(task), "output": printed}
        )

    async def kill(self, task: "Task") -> Answer:
        """End it with all that it started. One that has ended comes back as it is (A4)."""
        if not task.state.terminal or task.record.leftovers:
            await task.stop()
            if task.state is State.CANCELED:
                # Whoever kills a job knows of its end: the chat is not continued for that.
                await home_of(self._session).store.drop_signal(end_key(task.id), DELIBERATE)
                await task.refresh()
        said = sentence(task) if task.state.terminal else task.record.detail or sentence(task)
        return Answer(said, job_record(task))


def job_record(task: "Task") -> dict[str, Any]:
    """A job as this tool set shows it (A2)."""
    record, paths = task.record, task.document()["paths"]
    ended = task.state.terminal
    spelled = spelling(task.state, task.error).job if ended else _RUNNING
    command = shown_work(record.spec) or record.title
    return {
        "id": task.id,
        "session_id": record.session,
        "command": command
        if len(command) <= _COMMAND_CHARS
        else command[: _COMMAND_CHARS - 1] + "…",
        "status": spelled.status,
        "killed": spelled.flag == "killed",
        "timed_out": spelled.flag == "timed_out",
        "died": spelled.flag == "died",
        "pid": record.pid,
        "started_at": _time(record.started_at),
        "ended_at": _time(record.finished_at),
        "exit_code": record.exit_code if spelled.exit_code is None else spelled.exit_code,
        "max_runtime_s": record.max_runtime_s,
        "followed_up": record.signal_state is SignalState.DELIVERED
        or (ended and spelled.flag == "killed"),
        "log_path": paths["log"],
        "exit_path": paths["result"],
    }


def sentence(task: "Task") -> str:
    """Which one, and whether it runs, finished, failed, was killed, timed out or died (A5)."""
    return f"{task.id} ({task.record.title}) {_standing(task)} ({took(task)})"


def _standing(task: "Task") -> str:
    record = task.record
    if not task.state.terminal:
        if record.question is not None:
            return f"asks: {preview(record.question.text, _REASON_CHARS)}"
        waits = task.state is State.QUEUED
        standing = "waits for its start" if waits else "is running"
        return f"{standing}: {record.detail}" if record.detail else standing
    spelled = spelling(task.state, task.error).job
    why = f": {preview(record.error.message, _REASON_CHARS)}" if record.error else ""
    match spelled.flag:
        case "killed":
            return "was killed"
        case "timed_out":
            return f"timed out{why}"
        case "died":
            return f"died{why}"
        case _:
            return "finished" if spelled.status == "done" else f"failed{why}"


def _time(instant: clock.Instant | None) -> str | None:
    return None if instant is None else clock.rfc3339(instant)
