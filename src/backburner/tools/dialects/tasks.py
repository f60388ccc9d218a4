"""Tasks for a dialect: found by their ids, listed, and what they took and gave, in words."""

import json
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from backburner.model import clock
from backburner.model.clock import format_duration
from backburner.model.errors import NotFound
from backburner.model.limits import OUTPUT_MAX_CHARS
from backburner.model.states import ACTIVE, TERMINAL, Kind, State

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Task
    from backburner.work.log.read import Chunk

RECENT = 20
"""Tasks that have ended and are still listed; every one that has not is listed too."""

LISTED = 50
"""Lines of a list in the text for a model; as data it is whole."""

_PAGE = 200
_SHOWN_CHARS = 64
"""Of an id that is none: it may be of any length."""


def home_of(session: "Session") -> "Backburner":
    """Where it is a session of: its tools, and its record."""
    return session._backburner  # pyright: ignore[reportPrivateUsage]  # a handle of ours


async def found(session: "Session", reference: str, *, remedy: str) -> "Task":
    """A task of this session by its id, or by enough of it.

    NotFound says the same of one that belongs to another session as of one that there is not.
    """
    try:
        return await session.task(reference.strip())
    except NotFound:
        raise not_found(reference, remedy) from None


def not_found(reference: str, remedy: str) -> NotFound:
    """That error, in words for a model."""
    short = reference if len(reference) <= _SHOWN_CHARS else reference[: _SHOWN_CHARS - 1] + "…"
    return NotFound(f"{short!r} is not found in this session", remedy=remedy)


async def running_and_recent(session: "Session") -> list["Task"]:
    """Newest first."""
    running = await _all(session, ACTIVE)
    ended = await session.tasks(limit=RECENT, states=TERMINAL)
    tasks = {task.id: task for task in (*running, *ended)}  # one may have ended in between
    return sorted(tasks.values(), key=lambda task: task.record.seq, reverse=True)


async def parked(session: "Session") -> list["Task"]:
    """Every call of this session that outlived its budget, newest first."""
    return [task for task in await _all(session) if task.record.parked_at is not None]


async def _all(session: "Session", states: Collection[State] = ()) -> list["Task"]:
    tasks: list[Task] = []
    before: int | None = None
    while page := await session.tasks(limit=_PAGE, states=[*states], before=before):
        tasks += page
        before = page[-1].record.seq
    return tasks


def in_lines(tasks: Sequence["Task"], line: Callable[["Task"], str]) -> list[str]:
    """A line for each, and one for the rest of many: what waits for its start is left out first."""
    kept = {id(task) for task in sorted(tasks, key=_waits)[:LISTED]}
    lines = [line(task) for task in tasks if id(task) in kept]
    return lines if len(lines) == len(tasks) else [*lines, f"and {len(tasks) - len(lines)} more"]


def _waits(task: "Task") -> bool:
    return task.state is State.QUEUED


def took(task: "Task") -> str:
    """How long it has run, or did."""
    return format_duration(task.record.elapsed_us(clock.now()) / clock.SECOND)


def shown_result(result: Any) -> str:
    """What a task gave back, as text for a model; the data of an answer has it whole."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    if len(text) <= OUTPUT_MAX_CHARS:
        return text
    return f"{text[:OUTPUT_MAX_CHARS]}… (and {len(text) - OUTPUT_MAX_CHARS:,} characters more)"


def apart(task: "Task", chunk: "Chunk") -> tuple[str, str]:
    """Standard output and standard error. Tools have one log, whose lines say which they are."""
    if chunk.stderr_text is not None:
        return chunk.text, chunk.stderr_text
    if task.record.kind not in (Kind.TOOL, Kind.AGENT):
        return chunk.text, ""
    texts = {"stdout": "", "stderr": ""}
    at = "stdout"
    for line in chunk.text.splitlines(keepends=True):
        mark, space, rest = line.partition("] ")
        if space and mark[1:] in texts and mark[0] == "[":
            at, line = mark[1:], rest  # noqa: PLW2901 - the line without its mark
        texts[at] += line
    return texts["stdout"], texts["stderr"]
