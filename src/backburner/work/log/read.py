"""Reading the output of a task as text: only what is new, folded, cut to what a reader can take.

May read the logs of one task. It promises that successive reads with the cursor that each one
gives never repeat a byte, that no character or escape sequence is cut in two while the job runs,
and that whatever is missing is said in the text itself.
"""

import codecs
import os
import re
from dataclasses import replace
from typing import Literal

from backburner.model.limits import OUTPUT_MAX_CHARS
from backburner.model.values import value
from backburner.work.log.bounds import LogBounds
from backburner.work.log.cursor import Cursor
from backburner.work.log.fold import fold, fold_repeats
from backburner.work.log.marks import MarkedText
from backburner.work.log.pattern import Matcher, compile_pattern
from backburner.work.log.stream import Gap, StreamRead, read_stream

Streams = Literal["both", "out", "err"]
StrPath = str | os.PathLike[str]

_LONG_LINE = 64 * 1024
"""A line is waited for, or looked for after a gap, up to this length."""
_LONG_SEQUENCE = 4096
"""The end of an escape sequence is waited for up to this length; longer ones are no sequences."""
_FIRST_WINDOW = 64 * 1024
"""The last lines are looked for in the end of a log; what is looked at grows as needed."""

_UNFINISHED_SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*+[ -/]*+|[\]PX^_][^\x00-\x08\x0a-\x1f\x7f]*+\x1b?|[ -/]*+)?\Z"
)


@value
class Chunk:
    """One read of a task's output."""

    text: str
    """Standard output, or both streams where they share a log."""
    cursor: str
    """Hand it back as `since` to get what comes after."""
    dropped: int
    """Bytes between `since` and `cursor` that the log let go of."""
    total: int
    """Bytes that the job has written so far to the streams that were read."""
    stderr_text: str | None
    """Standard error where it has a log of its own and was asked for."""
    complete: bool
    """The job has ended, and there is nothing after the cursor."""


@value
class _Request:
    """What is the same for both streams."""

    bounds: LogBounds
    matches: Matcher | None
    last_lines: int | None
    raw: bool
    finished: bool


@value
class _Shown:
    """One stream as it is shown, and where the next read begins."""

    text: MarkedText
    end: int
    dropped: int = 0
    total: int = 0


def read_output(
    stdout_path: StrPath,
    stderr_path: StrPath | None = None,
    *,
    since: Cursor | str | None = None,
    max_chars: int | None = OUTPUT_MAX_CHARS,
    grep: str | None = None,
    last_lines: int | None = None,
    raw: bool = False,
    finished: bool,
    streams: Streams = "both",
    attempt: int = 1,
    bounds: LogBounds | None = None,
) -> Chunk:
    """The output of one attempt since a cursor, as text.

    `grep` is an RE2 pattern: lines without a match are left out, and while the job runs its last
    line waits until it is whole. `last_lines` counts from the end. `raw` leaves terminal noise in.
    `max_chars` is for both streams together, None for no limit. `stderr_path` is for tasks that
    keep the streams apart; without it there is no standard error to ask for. A cursor of an
    earlier attempt stands for the start of this one. Logs that do not exist are empty. Raises
    ValueError for a wrong cursor, pattern or number.
    """
    if (max_chars is not None and max_chars < 0) or (last_lines is not None and last_lines < 0):
        raise ValueError("max_chars and last_lines must be 0 or more")
    place = _place(since, attempt, apart=stderr_path is not None)
    request = _Request(
        bounds=bounds or LogBounds(),
        matches=None if grep is None else _matcher(grep),
        last_lines=last_lines,
        raw=raw,
        finished=finished,
    )
    nothing = MarkedText(copied=False)
    out = _Shown(nothing, place.stdout)
    error: _Shown | None = None
    if streams != "err":
        out = _show(stdout_path, place.stdout, request)
    if stderr_path is not None and streams != "out":
        error = _show(stderr_path, place.stderr or 0, request)
    texts = [out.text, error.text if error else nothing]
    text, stderr_text = _fit(texts, max_chars)
    place = replace(place, stdout=out.end, stderr=error.end if error else place.stderr)
    return Chunk(
        text=text,
        cursor=str(place),
        dropped=out.dropped + (error.dropped if error else 0),
        total=out.total + (error.total if error else 0),
        stderr_text=stderr_text if error else None,
        complete=finished,
    )


def _place(since: Cursor | str | None, attempt: int, *, apart: bool) -> Cursor:
    """Where to begin in this attempt."""
    start = Cursor(attempt, 0, 0 if apart else None)
    cursor = Cursor.parse(since) if isinstance(since, str) else since
    if cursor is None or cursor.attempt < attempt:
        return start
    if cursor.attempt > attempt:
        raise ValueError(
            f"the cursor {cursor} is of attempt {cursor.attempt}, but this is attempt {attempt}"
            " (is it another task's?)"
        )
    return replace(start, stdout=cursor.stdout, stderr=(cursor.stderr or 0) if apart else None)


def _show(path: StrPath, offset: int, request: _Request) -> _Shown:
    if request.last_lines is None:
        return _shape(read_stream(path, offset, bounds=request.bounds), request)
    wanted = request.last_lines
    window = max(_FIRST_WINDOW, 256 * wanted)
    while True:
        read = read_stream(path, offset, last=window, bounds=request.bounds)
        shown = _shape(read, request)
        # Two more than wanted: a run of equal lines at the edge would be counted too low.
        enough = shown.text.last_lines(wanted + 2) is not None
        if enough or window >= min(read.end - read.start, request.bounds.most):
            return replace(shown, text=shown.text.last_lines(wanted) or shown.text)
        window *= 4


def _shape(read: StreamRead, request: _Request) -> _Shown:
    text = MarkedText(copied=read.copied)
    if read.emptied:
        text.add_emptied()
    end = read.end
    previous = read.start
    for item in sorted((*read.segments, *read.gaps), key=lambda item: item.offset):
        if isinstance(item, Gap):
            text.add_gap(item)
            previous = -1
            continue
        data = item.data if item.offset == previous else item.data[_line_start(item.data) :]
        at_end = item.end == read.end
        settled = len(data)
        if at_end and not request.finished:
            settled = _settled(data, whole_lines=request.matches is not None)
        decoded, used = codecs.utf_8_decode(data[:settled], "replace", at_end and request.finished)
        if at_end:
            end -= len(data) - used
        text.add(_as_shown(decoded, request))
    return _Shown(text, end, read.dropped, read.total)


def _line_start(data: bytes) -> int:
    """Where the first whole line begins; in a very long line, its next redraw or character."""
    for line_break in (b"\n", b"\r"):
        if (at := data.find(line_break, 0, _LONG_LINE)) >= 0:
            return at + 1
    return next((at for at, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)  # noqa: PLR2004


def _settled(data: bytes, *, whole_lines: bool) -> int:
    """How much of the end of a growing stream can be given without cutting something in two."""
    if whole_lines:
        line = data.rfind(b"\n") + 1
        if len(data) - line <= _LONG_LINE:
            return line
    window = max(0, len(data) - _LONG_SEQUENCE)
    unfinished = _UNFINISHED_SEQUENCE.search(data, window)
    return unfinished.start() if unfinished else len(data)


def _as_shown(text: str, request: _Request) -> str:
    if not request.raw:
        text = fold(text, repeats=request.matches is None)
    if request.matches is None:
        return text
    *lines, unfinished = text.split("\n")
    text = "".join(f"{line}\n" for line in lines if request.matches(line))
    if unfinished and request.matches(unfinished):
        text += unfinished
    return text if request.raw else fold_repeats(text)


def _matcher(pattern: str) -> Matcher:
    try:
        return compile_pattern(pattern)
    except ValueError as error:
        raise ValueError(f"grep is not an RE2 pattern: {error}") from None


def _fit(texts: list[MarkedText], most: int | None) -> list[str]:
    """Cut two texts to a length for both; what one does not need, the other may have."""
    if most is None:
        return [text.text() for text in texts]
    first, second = (text.length for text in texts)
    room = max(most - second, most - most // 2 if second else most)
    return [texts[0].shortened(room), texts[1].shortened(most - min(first, room))]
