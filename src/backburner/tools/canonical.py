"""The tool set that we would give to a model ourselves: six tools, short answers, no polling.

An answer is made for a context window: only what is new, head and tail, within a budget of
characters. The set remembers how far this client has read each task.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backburner.model import clock
from backburner.model.clock import format_duration
from backburner.model.ending import Ending
from backburner.model.errors import InvalidArguments, TimeIsUp
from backburner.model.states import ACTIVE, State
from backburner.model.telling import how_it_ended
from backburner.tools.seen import Answer, Hints, Offer, Parameter

if TYPE_CHECKING:
    from backburner.app import Schedule, Session, Task

WAIT_MAX_S = 540.0
"""What a client may wait for within one call: most give up on a tool after ten minutes."""

_OUTPUT_CHARS = 4_000
"""What one answer gives of output unless asked for more: about 1,000 tokens."""
_OUTPUT_MOST = 40_000
_LISTED = 20

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
                    Parameter("cwd", text, "Folder of a command."),
                    Parameter("max_runtime", number, "Seconds; an hour unless given."),
                ),
                self._run,
            ),
            Offer(
                "background_list",
                "The tasks of this session, newest first. Only where you have lost an id: ends are"
                " told to you.",
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
                    Parameter("grep", text, "Only lines that match this pattern."),
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
                (task, Parameter("text", text, "The answer.", required=True)),
                self._send,
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
            ),
        ]  # fmt: skip

    # Handlers

    async def _run(self, given: dict[str, Any]) -> Answer:
        title = given.get("title")
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
            return Answer(_standing(task), _data(task), is_error=task.state is State.FAILED)
        said = task.record.detail or f"Started {task.id}. {_TOLD}"
        return Answer(said, _data(task))

    async def _list(self, given: dict[str, Any]) -> Answer:
        states = ACTIVE if given.get("active") else ()
        tasks = await self._session.tasks(limit=_LISTED, states=states)
        if not tasks:
            return Answer("No background tasks in this session.", {"tasks": []})
        lines = [_standing(task) for task in tasks]
        return Answer("\n".join(lines), {"tasks": [_data(task) for task in tasks]})

    async def _output(self, given: dict[str, Any]) -> Answer:
        task = await self._session.task(given["id"])
        wait = min(max(float(given.get("wait_seconds", 0)), 0.0), WAIT_MAX_S)
        if wait and not task.state.terminal:
            try:
                await task.wait(wait)
            except TimeIsUp:
                await task.refresh()
        most = min(max(int(given.get("max_chars", _OUTPUT_CHARS)), 100), _OUTPUT_MOST)
        chunk = await task.output(
            since=self._read.get(task.id), max_chars=most, grep=given.get("grep")
        )
        self._read[task.id] = chunk.cursor
        fresh = "\n".join(text.rstrip() for text in (chunk.text, chunk.stderr_text) if text)
        nothing = "" if task.state.terminal else "Nothing new. "
        rest = "" if task.state.terminal else f"\n{nothing if not fresh else ''}{_TOLD}"
        result = _result_of(task)
        parts = [part for part in (_standing(task), fresh, result) if part]
        data = {**_data(task), "output": fresh, "cursor": chunk.cursor}
        return Answer("\n".join(parts) + rest, data)

    async def _stop(self, given: dict[str, Any]) -> Answer:
        task = await self._session.task(given["id"])
        if task.state.terminal and not task.record.leftovers:
            return Answer(f"It is not running. {_standing(task)}", _data(task))
        task = await task.stop(force=given.get("force", False))
        return Answer(_standing(task), _data(task))

    async def _send(self, given: dict[str, Any]) -> Answer:
        task = await self._session.task(given["id"])
        question = await task.send(given["text"])
        said = "The question is answered." if question is not None else "Sent."
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
            return Answer("\n".join(map(_planned, schedules)), {"schedules": data})
        if "id" not in given:
            raise InvalidArguments(f"background_schedule: to {action} one, give its id")
        schedule = await self._session.find_schedule(given["id"])
        match action:
            case "pause":
                schedule = await schedule.pause()
            case "resume":
                schedule = await schedule.resume()
            case _:
                schedule = await schedule.cancel()
        return Answer(_planned(schedule), schedule.document())

    async def _add(self, given: dict[str, Any]) -> Answer:
        if "when" not in given:
            raise InvalidArguments("background_schedule: when is missing", remedy="*/10 * * * *")
        match _work(given):
            case "command":
                spec: dict[str, Any] = {"command": given["command"]}
            case "tool":
                spec = {"tool": given["tool"], "args": given.get("args", {})}
            case _:
                spec = {"ask": given["prompt"]}
        schedule = await self._session.schedule(
            given["when"], spec, tz=given.get("timezone", "UTC"), title=given.get("title")
        )
        return Answer(_planned(schedule), schedule.document())


def _work(given: dict[str, Any]) -> str:
    """Which of the three kinds of work it is."""
    chosen = [name for name in ("command", "tool", "prompt") if name in given]
    if len(chosen) != 1:
        raise InvalidArguments("give exactly one of command, tool and prompt")
    if "args" in given and chosen != ["tool"]:
        raise InvalidArguments("args go with a tool")
    return chosen[0]


def _standing(task: "Task") -> str:
    """A line: which one, and how it stands."""
    record = task.record
    took = format_duration(record.elapsed_us(clock.now()) / clock.SECOND)
    if record.state.terminal:
        ending = Ending(record.state, record.error, record.exit_code, record.summary)
        return f"{task.id} ({record.title}) {how_it_ended(ending)} after {took}"
    if record.question is not None:
        return f"{task.id} ({record.title}) asks: {record.question.text}"
    state = record.state.value
    detail = f": {record.detail}" if record.detail else ""
    progress = ""
    if record.progress is not None:
        total = "" if record.progress.total is None else f"/{record.progress.total:g}"
        progress = f" {record.progress.current:g}{total} {record.progress.unit or ''}".rstrip()
    return f"{task.id} ({record.title}) {state} for {took}{progress}{detail}"


def _result_of(task: "Task") -> str:
    if task.result is None:
        return ""
    text = (
        task.result if isinstance(task.result, str) else json.dumps(task.result, ensure_ascii=False)
    )
    short = text if len(text) <= _OUTPUT_CHARS else text[:_OUTPUT_CHARS] + "…"
    return f"result: {short}"


def _planned(schedule: "Schedule") -> str:
    document = schedule.document()
    when = document["cron_expression"] or document["scheduled_at"]
    following = document["next_trigger_at"] or "never"
    return f"{schedule.id} ({document['title']}) {schedule.state}: {when}, next {following}"


def _data(task: "Task") -> dict[str, Any]:
    """The part of a task that a program needs to go on."""
    document = task.document()
    kept = ("id", "kind", "title", "state", "detail", "progress", "exit_code", "error", "summary")
    return {name: document[name] for name in (*kept, "result", "created_at", "finished_at")}
