"""`show`: everything about one task, on one screen."""

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from backburner.app import Backburner, Task
from backburner.cli import bars, phrases, terminal
from backburner.cli.table import Cell, Column, Row, Table
from backburner.cli.textwidth import clean, cut
from backburner.cli.timeline import event_text
from backburner.model import clock
from backburner.model.document import (
    Artifact,
    event_document,
    question_document,
    signal_document,
)
from backburner.model.events import Event, EventKind
from backburner.model.input import Input
from backburner.model.limits import DEFAULT_SESSION
from backburner.model.questions import Question
from backburner.model.signals import INBOX, Signal, SignalState
from backburner.model.task import preview
from backburner.model.telling import waiting
from backburner.model.values import value
from backburner.model.watching import Watching, ready_when
from backburner.runtime.allowance import limits_in_force
from backburner.runtime.processes import ProcessUse, processes_of
from backburner.work.log.marks import byte_count
from backburner.work.log.read import Chunk
from backburner.work.shell import input_of
from backburner.work.shown import WORK_IS_CALLED, shown_work

_LAST_LINES = 10
_BAR_COLUMNS = 20
_RESULT_CHARS = 200
_MARGIN = "  "


@value
class Portrait:
    """A task and all that belongs to it, as of one moment."""

    task: Task
    now: clock.Instant
    events: list[Event]
    signals: list[Signal]
    processes: list[ProcessUse]
    questions: list[Question]
    output: Chunk
    attachable: bool
    """Whether its terminal, where it has one, is on this machine."""

    def document(self) -> dict[str, Any]:
        """The task as JSON, and what `show` adds."""
        return {
            **self.task.document(),
            "command": shown_work(self.task.record.spec),
            "machine": self._machine() or None,
            "events": [event_document(event) for event in self.events],
            "signals": [signal_document(signal) for signal in self.signals],
            "processes": [process.document() for process in self.processes],
            "questions": [question_document(question) for question in self.questions],
        }

    def lines(self) -> Iterator[str]:
        """What a person sees."""
        colours = terminal.shows_colours(sys.stdout)
        width = terminal.width(sys.stdout)
        yield self._headline(colours)
        yield from _block(_FACT_COLUMNS, self._facts(), width, colours)
        if self.processes:
            yield ""
            yield _heading("processes", colours)
            yield from _block(_PROCESS_COLUMNS, _process_rows(self.processes), width, colours)
        if self.output.total:
            yield ""
            yield _heading(f"output: {self._how_much()}", colours)
            for stream in (self.output.text, self.output.stderr_text or ""):
                for line in stream.splitlines():
                    text = clean(line.expandtabs())
                    yield f"{_MARGIN}{text if width is None else cut(text, width - len(_MARGIN))}"
        yield ""
        yield _heading("events", colours)
        yield from _block(_EVENT_COLUMNS, self._event_rows(), width, colours)

    def _headline(self, colours: bool) -> str:
        record = self.task.record
        state = record.state.value.replace("_", " ")
        shown = terminal.paint(state, phrases.STATE_COLOURS[record.state]) if colours else state
        if record.error is None:
            return f"{record.id}  {shown}"
        ended = clean(phrases.ending(record))
        rest = ended.removeprefix(state)  # `failed: exit code 2`, but `timed out: …`
        return f"{record.id}  {shown}{rest if rest != ended else f': {ended}'}"

    def _facts(self) -> list[Row]:
        record = self.task.record
        spec = record.spec
        command = shown_work(spec)
        took = phrases.took(record, self.now)
        limit = record.max_runtime_s
        within = "no limit" if limit is None else f"limit {clock.format_duration(limit)}"
        facts: list[tuple[str, str]] = [
            ("title", record.title if record.title != command else ""),
            ("session", record.session if record.session != DEFAULT_SESSION else ""),
            ("agent", spec.get("agent", "")),
            (WORK_IS_CALLED[record.kind], command),
            ("folder", spec.get("cwd", "")),
            ("variables", ", ".join(spec.get("env", {}))),  # values may be secrets
            ("created", _moment(record.created_at, self.now)),
            ("started", _moment(record.started_at, self.now)),
            ("finished", _moment(record.finished_at, self.now)),
            ("run time", f"{took} ({within})" if took else within),
            ("machine", self._machine()),
            ("exit code", "" if record.exit_code is None else str(record.exit_code)),
            ("attempt", phrases.tries(record)),
            ("queue", record.queue or ""),
            ("priority", str(record.priority) if record.priority else ""),
            ("after", ", ".join(record.after)),
            ("waits", self._waits()),
            ("limits", ", ".join(limits_in_force(record))),
            ("progress", self._progress()),
            ("detail", record.detail or ""),
            *(("asks", _asked(each, self.now)) for each in self.questions if each.open),
            ("result", _result(record.result)),
            *(("artifact", f"{each.name}, {byte_count(each.bytes)}") for each in self._artifacts()),
            ("ready", self._ready()),
            *Watching.from_spec(spec).described().items(),
            ("input", self._input()),
            ("stopping", self._stopping()),
            ("left behind", phrases.processes(record.leftovers) if record.leftovers else ""),
            ("parent", record.parent or ""),
            ("schedule", record.schedule or ""),
            *(("signal", _told(signal, self.now)) for signal in self.signals),
        ]
        return [[Cell(name, "dim"), Cell(value)] for name, value in facts if value]

    def _machine(self) -> str:
        """Where it runs, or ran last, in a record of many."""
        started = [each.data for each in self.events if each.kind is EventKind.STARTED]
        return started[-1].get("machine", "") if started else ""

    def _ready(self) -> str:
        record = self.task.record
        ready = ready_when(record)
        if ready is None:
            return ""
        if record.ready_at is not None:
            return f"{_moment(record.ready_at, self.now)}: {ready.described}"
        return f"{'never was' if record.state.terminal else 'not yet'}: when {ready.described}"

    def _artifacts(self) -> list[Artifact]:
        return [Artifact(**each) for each in self.task.document()["artifacts"]]

    def _waits(self) -> str:
        wait = self.task.record.wait
        return "" if wait is None else waiting(wait, self.now).removeprefix("waits ")

    def _input(self) -> str:
        if self.task.state.terminal:
            return ""
        return {
            Input.NONE: "",
            Input.PIPE: f"backburner send {self.task.id} TEXT, then --eof",
            Input.PTY: f"a terminal: backburner attach {self.task.id}"
            if self.attachable
            else f"a terminal: backburner send {self.task.id} TEXT",
        }[input_of(self.task.record.spec)]

    def _progress(self) -> str:
        given = self.task.record.progress
        part = bars.fraction(given)
        bar = f"{bars.bar(part, _BAR_COLUMNS)} " if part is not None else ""
        return f"{bar}{phrases.progress(given)}" if given else ""

    def _stopping(self) -> str:
        stop = self.task.record.stop
        if stop is None or self.task.state.terminal:
            return ""
        return f"asked for {_moment(stop.at, self.now)}"

    def _how_much(self) -> str:
        dropped = self.task.document()["output"]["dropped_bytes"]
        said = byte_count(self.output.total)
        if dropped:
            said += f", {byte_count(dropped)} of it dropped"
        shown = len(self.output.text.splitlines())
        return f"{said}, the last {shown} lines" if shown == _LAST_LINES else said

    def _event_rows(self) -> list[Row]:
        first = self.events[0].at if self.events else self.now
        return [
            [
                Cell(f"+{clock.format_duration(max(0, event.at - first) / clock.SECOND)}", "dim"),
                Cell(event.kind.value.replace("_", " "), _event_colour(event)),
                Cell(event_text(event)),
            ]
            for event in self.events
        ]


async def look_at(backburner: Backburner, task: Task) -> Portrait:
    """Gather what belongs to a task."""
    output = await task.output(last_lines=_LAST_LINES)
    return Portrait(
        task=task,
        now=clock.now(),
        events=[event async for event in task.events(follow=False)],
        signals=await backburner.store.signals(
            backburner.session(task.record.session, owner=task.record.owner).scope, task=task.id
        ),
        processes=processes_of(backburner.home, task.record),
        questions=await task.questions(),
        output=output,
        attachable=not backburner.home.shared,
    )


_FACT_COLUMNS = (Column(""), Column("", least=20))
_EVENT_COLUMNS = (Column("", right=True), Column(""), Column("", least=20))
_PROCESS_COLUMNS = (
    Column("PID", right=True),
    Column("CPU", right=True),
    Column("MEMORY", right=True),
    Column("TIME", right=True),
    Column("COMMAND", least=20),
)


def _block(
    columns: tuple[Column, ...], rows: list[Row], width: int | None, colours: bool
) -> Iterator[str]:
    """Rows below a heading, with a margin."""
    room = None if width is None else width - len(_MARGIN)
    for line in Table(columns, width=room, colours=colours).lines(rows):
        yield f"{_MARGIN}{line}"


def _heading(text: str, colours: bool) -> str:
    return terminal.paint(text, "bold") if colours else text


def _process_rows(processes: list[ProcessUse]) -> list[Row]:
    return [
        [
            str(process.pid),
            f"{process.cpu_percent:.0f} %",
            byte_count(process.memory_bytes),
            clock.format_duration(process.seconds),
            f"{_branch(process.depth)}{clean(process.command)}",
        ]
        for process in processes
    ]


def _branch(depth: int) -> str:
    return f"{'  ' * (depth - 1)}└ " if depth else ""


def _moment(instant: clock.Instant | None, now: clock.Instant) -> str:
    """A time of day for this person, and how long ago it was."""
    if instant is None:
        return ""
    local = datetime.fromtimestamp(instant / clock.SECOND).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S} ({phrases.since(instant, now)} ago)"


def _asked(question: Question, now: clock.Instant) -> str:
    text = " ".join(question.text.split())
    if question.schema is not None and not question.approval:
        from backburner.work.fitting import shown  # seldom needed

        text = f"{text} [{shown(question.schema)}]"
    return f"{text} ({question.id}, {phrases.since(question.asked_at, now)} ago)"


def _result(value: Any) -> str:
    return "" if value is None else preview(json.dumps(value, ensure_ascii=False), _RESULT_CHARS)


def _told(signal: Signal, now: clock.Instant) -> str:
    match signal.state:
        case SignalState.DELIVERED:
            assert signal.delivered_at is not None
            said = f"delivered {phrases.since(signal.delivered_at, now)} ago"
        case SignalState.PENDING:
            said = "pending: nobody has taken it yet"
        case SignalState.CLAIMED:
            said = "claimed: someone has it and has not acknowledged it yet"
        case SignalState.FAILED | SignalState.DROPPED:
            said = f"{signal.state.value}: {signal.reason}"
    through = "" if signal.channel == INBOX else f" through {signal.channel}"
    return f"{signal.kind.value}{through}, {said}"


def _event_colour(event: Event) -> str | None:
    if event.kind is not EventKind.FINISHED:
        return None
    return phrases.STATE_COLOURS.get(event.data.get("state", ""))
