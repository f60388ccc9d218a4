"""The tool set that we would give to a model ourselves: six tools, short answers, no polling.

An answer is made for a context window: only what is new, head and tail, within a budget of
characters. The set remembers how far this client has read each task; to search is to look at all of
it again, because what was left out, or is no longer in the window, has to be found.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backburner.model.errors import InvalidArguments, NotFound, TimeIsUp
from backburner.model.policy import DRY_RUN, Action
from backburner.model.states import ACTIVE, State
from backburner.model.task import preview
from backburner.tools.dialects.tasks import in_lines, running_and_recent
from backburner.tools.seen import ANYTHING, Answer, Hints, Offer, Parameter
from backburner.tools.standing import data_of, planned, played, result_of, standing

if TYPE_CHECKING:
    from backburner.app import Schedule, Session, Task

WAIT_MAX_S = 540.0
"""What a client may wait for within one call: most give up on a tool after ten minutes."""

_OUTPUT_CHARS = 4_000
"""What one answer gives of output unless asked for more: about 1,000 tokens."""
_OUTPUT_MOST = 40_000
_LINE_CHARS = 300
"""Of a task in a list: an error or a question may be long, and is whole in its output."""

_TOLD = "You will be told when it ends: go on, do not poll."


class Canonical:
    """The handlers, over one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._read: dict[str, str] = {}
        """How far each task was read: a cursor by id."""

    def offers(self) -> Sequence[Offer]:
        """All six."""
        text, number, flag = "string", "number", "boolean"
        task = Parameter("id", text, "The task's id, or enough of it.", required=True)
        work = (
            Parameter("command", text, "A shell command."),
            Parameter("cwd", text, "Its folder."),
            Parameter("tool", text, "Or the name of a tool that can run in the background."),
            Parameter("args", "object", "Its arguments."),
            Parameter("prompt", text, "Or what a sub-agent is to do."),
        )
        return [
            Offer(
                "background_run",
                "Start work that takes longer than a few seconds, and go on. Give one of command,"
                f" tool, prompt. It survives restarts. {_TOLD}",
                (
                    *work,
                    Parameter("title", text, "A few words for people."),
                    Parameter("max_runtime", number, "Seconds; an hour unless given."),
                ),
                self._run,
                ANYTHING,
            ),
            Offer(
                "background_list",
                "The running and recent tasks of this session, newest first. Only where you have"
                " lost an id: ends are told to you.",
                (Parameter("active", flag, "Only those that have not ended."),),
                self._list,
                Hints(readonly=True, idempotent=True),
                parallel=True,
            ),
            Offer(
                "background_output",
                "What a task has printed since your last look, and how it stands. To wait for its"
                " end, give wait_seconds once instead of looking again and again.",
                (
                    task,
                    Parameter("wait_seconds", number, "Wait for its end, at most 540."),
                    Parameter("grep", text, "Only lines that match, of all that it has printed."),
                    Parameter("max_chars", "integer", "4,000 unless given."),
                ),
                self._output,
                Hints(readonly=True),
                parallel=True,
            ),
            Offer(
                "background_stop",
                "End a task and everything that it has started.",
                (task, Parameter("force", flag, "At once, without time to tidy up.")),
                self._stop,
                Hints(destructive=True, idempotent=True),
            ),
            Offer(
                "background_send",
                "Answer the question of a task, or send it a message or a line of input.",
                (
                    task,
                    Parameter("text", text, "The answer.", required=True),
                    Parameter("question", text, "Id of the question, where you were told one."),
                ),
                self._send,
                ANYTHING,
            ),
            Offer(
                "background_schedule",
                "Start work by the clock, also when nobody is here; list, pause, resume or cancel"
                " schedules.",
                (
                    Parameter(
                        "action", text, required=True,
                        choices=("add", "list", "pause", "resume", "cancel"),
                    ),
                    Parameter("when", text, "For add: cron (5 fields), or a time as RFC 3339."),
                    *work,
                    Parameter("timezone", text, "IANA name; UTC unless given."),
                    Parameter("title", text),
                    Parameter("id", text, "Of the schedule to pause, resume or cancel."),
                ),
                self._schedule,
                ANYTHING,
            ),
        ]  # fmt: skip

    # Handlers

    async def _run(self, given: dict[str, Any]) -> Answer:
        title = _title(given)
        limit = given.get("max_runtime", 3600.0)
        match _work(given):
            case "command":
                task = await self._session.run(
                    given["command"], title=title, max_runtime=limit, cwd=given.get("cwd")
                )
            case "tool":
                task = await self._session.spawn(
                    given["tool"], given.get("args", {}), title=title, max_runtime=limit
                )
            case _:
                task = await self._session.ask(given["prompt"], title=title, max_runtime=limit)
        if task.state.terminal:
            return Answer(standing(task), data_of(task), is_error=task.state is State.FAILED)
        said = played(task, Action.START) or f"Started {task.id}. {_TOLD}"
        return Answer(said, data_of(task))

    async def _task(self, reference: str) -> "Task":
        try:
            return await self._session.task(reference.strip())
        except NotFound:
            said = f"no task {preview(reference)!r} in this session"
            raise NotFound(said, remedy="background_list shows its tasks") from None

    async def _list(self, given: dict[str, Any]) -> Answer:
        tasks = await running_and_recent(self._session)
        if given.get("active"):
            tasks = [task for task in tasks if task.state in ACTIVE]
        if not tasks:
            return Answer("No background tasks in this session.", {"tasks": []})
        lines = in_lines(tasks, lambda task: preview(standing(task), _LINE_CHARS))
        return Answer("\n".join(lines), {"tasks": [data_of(task) for task in tasks]})

    async def _output(self, given: dict[str, Any]) -> Answer:
        task = await self._task(given["id"])
        wait = min(max(float(given.get("wait_seconds", 0)), 0.0), WAIT_MAX_S)
        if wait and not task.state.terminal:
            try:
                await task.wait(wait)
            except TimeIsUp:
                await task.refresh()
        most = min(max(int(given.get("max_chars", _OUTPUT_CHARS)), 100), _OUTPUT_MOST)
        grep = given.get("grep")
        before = self._read.get(task.id)
        chunk = await task.output(since=None if grep else before, max_chars=most, grep=grep)
        if not grep:
            self._read[task.id] = chunk.cursor
        fresh = "\n".join(text.rstrip() for text in (chunk.text, chunk.stderr_text) if text)
        if grep:
            nothing = "No line matches."
        else:
            nothing = "Nothing new: grep looks at all of it." if before else "No output."
        told = "" if task.state.terminal else _TOLD
        parts = (standing(task), fresh or nothing, result_of(task), told)
        data = {**data_of(task), "output": fresh, "cursor": chunk.cursor}
        return Answer("\n".join(part for part in parts if part), data)

    async def _stop(self, given: dict[str, Any]) -> Answer:
        task = await self._task(given["id"])
        if task.state.terminal and not task.record.leftovers:
            return Answer(f"It is not running. {standing(task)}", data_of(task))
        task = await task.stop(force=given.get("force", False))
        return Answer(standing(task), data_of(task))

    async def _send(self, given: dict[str, Any]) -> Answer:
        task = await self._task(given["id"])
        question = await task.send(given["text"], question=given.get("question"))
        said = "The question is answered." if question is not None else "Sent."
        if self._session.policy.plays(Action.SEND):
            said = f"{DRY_RUN} would send it to {task.id}"
        return Answer(said, {"id": task.id, "question": question})

    async def _schedule(self, given: dict[str, Any]) -> Answer:
        action = given["action"]
        if action == "add":
            return await self._add(given)
        if action == "list":
            schedules = await self._session.schedules()
            if not schedules:
                return Answer("No schedules in this session.", {"schedules": []})
            data = [schedule.document() for schedule in schedules]
            return Answer("\n".join(map(planned, schedules)), {"schedules": data})
        if "id" not in given:
            raise InvalidArguments(f"background_schedule: to {action} one, give its id")
        schedule = await self._find_schedule(given["id"])
        match action:
            case "pause":
                schedule = await schedule.pause()
            case "resume":
                schedule = await schedule.resume()
            case _:
                schedule = await schedule.cancel()
        return Answer(planned(schedule), schedule.document())

    async def _find_schedule(self, reference: str) -> "Schedule":
        try:
            return await self._session.find_schedule(reference.strip())
        except NotFound:
            said = f"no schedule {preview(reference)!r} in this session"
            raise NotFound(said, remedy="action list shows its schedules") from None

    async def _add(self, given: dict[str, Any]) -> Answer:
        if "when" not in given:
            raise InvalidArguments("background_schedule: when is missing", remedy="*/10 * * * *")
        match _work(given):
            case "command":
                spec: dict[str, Any] = {
                    name: given[name] for name in ("command", "cwd") if name in given
                }
            case "tool":
                spec = {"tool": given["tool"], "args": given.get("args", {})}
            case _:
                spec = {"ask": given["prompt"]}
        schedule = await self._session.schedule(
            given["when"], spec, tz=given.get("timezone", "UTC"), title=_title(given)
        )
        return Answer(planned(schedule), schedule.document())


def _work(given: dict[str, Any]) -> str:
    """Which of the three kinds of work it is."""
    chosen = [name for name in ("command", "tool", "prompt") if name in given]
    if len(chosen) != 1:
        raise InvalidArguments("give exactly one of command, tool and prompt")
    if "args" in given and chosen != ["tool"]:
        raise InvalidArguments("args go with a tool")
    if "cwd" in given and chosen != ["command"]:
        raise InvalidArguments("cwd goes with a command")
    return chosen[0]


def _title(given: dict[str, Any]) -> str | None:
    """A blank one is none: there is one of the work itself."""
    return given.get("title", "").strip() or None
