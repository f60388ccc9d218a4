"""The output of a task: where it lies, how much there is, reading it by cursor or by time."""

import os
from typing import Any

from backburner.model.clock import Instant
from backburner.model.document import Artifact, task_document
from backburner.model.errors import StoreError, UsageError
from backburner.model.home import AttemptFolder, Home
from backburner.model.task import Task
from backburner.model.values import value
from backburner.store.protocol import Output
from backburner.work.artifacts import artifacts_of, open_file
from backburner.work.depot import stored_artifacts
from backburner.work.log.cursor import Cursor
from backburner.work.log.measure import measure
from backburner.work.log.read import Chunk, Streams, read_output
from backburner.work.log.stream import PATIENCE_S, Segment, read_stream
from backburner.work.plain_file import open_plain
from backburner.work.shell import log_bounds

_MARKS_MAX = 1024 * 1024
"""There are a few thousand, unless the job has put something else there."""


def measure_output(folder: AttemptFolder, *, patience_s: float = PATIENCE_S) -> Output:
    """How much was written and dropped so far, over both streams; see `read_stream`."""
    total = dropped = 0
    for path in (folder.log, folder.stderr):
        written, lost = _measured(path, patience_s)
        total += written
        dropped += lost
    return Output(total, dropped)


def _measured(path: str, patience_s: float = PATIENCE_S) -> tuple[int, int]:
    """Nothing, where it cannot be read: its task is described and listed all the same."""
    try:
        return measure(path, patience_s=patience_s)
    except OSError:
        return 0, 0


def end_cursor(folder: AttemptFolder, attempt: int) -> str:
    """The cursor after everything that is there."""
    apart = os.path.exists(folder.stderr)
    stderr = _measured(folder.stderr)[0] if apart else None
    return str(Cursor(attempt, _measured(folder.log)[0], stderr))


def attempt_with_output(home: Home, task: Task) -> int:
    """The present one; where that has not started, the last of those before it."""
    if task.started_at is None:
        for attempt in range(task.attempt, 1, -1):
            if measure_output(home.attempt(task.id, attempt)).total:
                return attempt
        return 1
    return task.attempt


def describe(home: Home, task: Task) -> dict[str, Any]:
    """The task as JSON, with how much output there is now."""
    attempt = attempt_with_output(home, task)
    folder = home.attempt(task.id, attempt)
    running = not task.state.terminal or bool(task.leftovers) or attempt != task.attempt
    measured = running and not home.shared  # of what runs elsewhere the record says it
    output = measure_output(folder) if measured else None
    return task_document(
        task,
        home,
        output_bytes=output.total if output else task.output_bytes,
        dropped_bytes=output.dropped if output else task.dropped_bytes,
        cursor=_cursor_in_record(task, folder, attempt)
        if home.shared
        else end_cursor(folder, attempt),
        artifacts=artifacts(home, task),
        is_here=os.path.exists if home.shared else lambda _: True,
    )


def _cursor_in_record(task: Task, folder: AttemptFolder, attempt: int) -> str:
    """Where two logs are kept apart, after what was copied here: so far it was read."""
    if task.spec.get("separate_stderr") or attempt != task.attempt:
        return end_cursor(folder, attempt)
    return str(Cursor(attempt, task.output_bytes))


def read_task_output(
    home: Home,
    task: Task,
    *,
    since: str | None,
    max_chars: int | None,
    grep: str | None = None,
    last_lines: int | None = None,
    raw: bool = False,
    streams: Streams = "both",
) -> Chunk:
    """One read. A cursor of an earlier attempt starts the newest one from its beginning.

    Of a log that cannot be read the chunk says so, where it would begin: it is shown with other
    things, which are not to be lost for it.
    """
    attempt = attempt_with_output(home, task)
    folder = home.attempt(task.id, attempt)
    apart = bool(task.spec.get("separate_stderr"))
    try:
        return read_output(
            folder.log,
            folder.stderr if apart else None,
            attempt=attempt,
            since=since,
            max_chars=max_chars,
            grep=grep,
            last_lines=last_lines,
            raw=raw,
            finished=task.state.terminal and task.leftovers == 0,
            streams=streams,
            bounds=log_bounds(task.spec),
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        text = "" if since else f"[the output cannot be read: {error.strerror or error}]\n"
        cursor = since or str(Cursor(attempt, 0, 0 if apart else None))
        later = isinstance(error, BlockingIOError)
        complete = task.state.terminal and task.leftovers == 0 and not later
        total, dropped = task.output_bytes, task.dropped_bytes
        return Chunk(text, cursor, dropped, total, None, complete=complete)


@value
class LogBytes:
    """The bytes of one stream that are kept, by their places in all that was written."""

    total: int
    segments: tuple[Segment, ...]

    def whole(self) -> bytes:
        """One after the other, with a line where something is missing."""
        pieces: list[bytes] = []
        at = 0
        for segment in (*self.segments, Segment(self.total, b"")):
            if segment.offset > at:
                pieces.append(f"\n[{segment.offset - at} bytes were dropped here]\n".encode())
            pieces.append(segment.data)
            at = segment.end
        return b"".join(pieces)

    def part(self, first: int, last: int) -> tuple[int, bytes]:
        """The first bytes between two places that are kept, and where they are."""
        for segment in self.segments:
            start, end = max(first, segment.offset), min(last + 1, segment.end)
            if start < end:
                return start, segment.data[start - segment.offset : end - segment.offset]
        return first, b""


def read_task_bytes(home: Home, task: Task, *, stderr: bool = False) -> LogBytes:
    """What is kept of a stream, as it was written. Never more than the bounds of a log.

    StoreError where it cannot be read.
    """
    folder = home.attempt(task.id, attempt_with_output(home, task))
    path = folder.stderr if stderr else folder.log
    try:
        read = read_stream(path, bounds=log_bounds(task.spec))
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"the output of {task.id} cannot be read: {reason}") from error
    return LogBytes(read.total, read.segments)


def artifacts(home: Home, task: Task) -> list[Artifact]:
    """The files that it has added, by name."""
    if home.shared:
        return stored_artifacts(task)
    return artifacts_of(home.attempt(task.id, attempt_with_output(home, task)))


def open_artifact(home: Home, task: Task, name: str) -> int:
    """A descriptor of one of them that is here. NotFound, also for links to elsewhere."""
    attempt = task.artifacts.attempt if task.artifacts else attempt_with_output(home, task)
    return open_file(home.attempt(task.id, attempt), name)


def add_mark(folder: AttemptFolder, at: Instant, cursor: str) -> None:
    """Note how far the output was at this time. OSError where that cannot be."""
    with open(folder.marks, "a", encoding="ascii", opener=open_plain) as file:
        file.write(f"{at} {cursor}\n")


def cursor_at(home: Home, task: Task, at: Instant) -> str | None:
    """The latest noted cursor that is not after this time; None is the beginning."""
    found: str | None = None
    folder = home.attempt(task.id, attempt_with_output(home, task))
    try:
        with open(folder.marks, encoding="ascii", opener=open_plain) as file:
            for line in file.read(_MARKS_MAX).splitlines():
                noted, _, cursor = line.strip().partition(" ")
                if int(noted) > at:
                    break
                found = cursor
    except (OSError, ValueError):
        pass
    return found
