"""Bounding a log where holes cannot be punched: copy its ends to files beside it, then empty it.

The job appends, so it goes on at 0; `.map` says where in the stream each file belongs. Promises
that a kill at any moment loses nothing more, and that whoever finds the same map before and after
a read, and no mover at work, has read the truth. What the job writes between the last look and the
emptying is lost.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Generator
from dataclasses import asdict, replace
from enum import StrEnum
from io import FileIO
from typing import Literal

from backburner.model.values import value
from backburner.work import flock
from backburner.work.log.bounds import BoundResult, LogBounds
from backburner.work.plain_file import open_plain

LEAST_MOVE = 4096
"""Less is not worth it; and the token has to fit in what the log holds."""

_COPY = 256 * 1024
_CATCH_UPS = 8
_TOKEN = 32
_LONGEST_MAP = 4096
"""More is none of ours, and might be more than there is room for."""

_FARTHEST = 1 << 60
"""No job writes so much; sums of it are numbers in every record."""

_PATIENCE_S = 0.05
"""At the end of a job, when there is no next look. Readers have the lock for microseconds."""
_NAP = 0.001


class State(StrEnum):
    """How far a move has come."""

    STEADY = "steady"
    """Nothing moves: the layout holds."""
    MARKING = "marking"
    """The layout holds, but the log may begin with the token instead of the covered bytes."""
    MOVING = "moving"
    """If the log begins with the token, it was not emptied yet, else it was."""


@value
class Layout:
    """Which part of the stream is in which file. All are positions in the stream."""

    head: int = 0
    """Length of the head file, which begins at 0."""
    tail: int = 0
    """Number of the tail file; 0 for none."""
    tail_at: int = 0
    live_at: int = 0
    """Where the log itself begins."""


@value
class LogMap:
    """What stands in the map file.

    The token is evidence that lies in the log itself: emptying the file removes it in the same
    instant, so whoever comes after a crash knows which of the two layouts is true.
    """

    generation: int
    state: State
    layout: Layout
    after: Layout | None = None
    """The layout once the log is empty; `live_at` is at least what anyone has read by then."""
    token: str = ""
    covered: str = ""
    """The bytes (hex) in whose place the token is written."""


def exists(path: str) -> bool:
    return os.path.exists(map_path(path))


def map_path(path: str) -> str:
    return path + ".map"


def head_path(path: str) -> str:
    return path + ".head"


def tail_path(path: str, layout: Layout) -> str:
    return f"{path}.tail.{layout.tail}"


def forget(path: str) -> None:
    """What is in the place of the log from now on was never moved."""
    for beside in (map_path(path), head_path(path), f"{path}.tail.1", f"{path}.tail.2"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)


@contextlib.contextmanager
def moving(path: str, *, patience_s: float = 0.0) -> Generator[None]:
    """While this lasts, readers of a log whose map is not steady wait.

    BlockingIOError where somebody else has the lock: a reader for a moment, or the job for ever.
    """
    fd = open_plain(_lock_path(path), os.O_RDWR | os.O_CREAT)
    try:
        _lock(fd, time.monotonic() + patience_s)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_NAP)


def is_moving(path: str) -> bool:
    """Whether a mover is at work. One that died is not, whatever its map says."""
    try:
        return flock.is_held(_lock_path(path))
    except FileNotFoundError:
        return False


def _lock_path(path: str) -> str:
    return path + ".lock"


def read_map_text(path: str) -> bytes:
    """The map as it stands in its file, to compare two reads; empty if there is none."""
    try:
        with open(map_path(path), "rb", opener=open_plain) as file:
            return file.read(_LONGEST_MAP)
    except FileNotFoundError:
        return b""


def parse_map(text: bytes) -> LogMap:
    """What `read_map_text` gave; a log without a map is a map that says so.

    OSError where somebody else has written it: then nobody knows what the log is.
    """
    if not text:
        return LogMap(0, State.STEADY, Layout())
    try:
        given = json.loads(text)
        after = given.pop("after")
        found = LogMap(
            state=State(given.pop("state")),
            layout=Layout(**given.pop("layout")),
            after=Layout(**after) if after else None,
            **given,
        )
        _check(found)
        return found
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise OSError(errno.EIO, "the map of the log is damaged") from error


def _check(found: LogMap) -> None:
    """ValueError or TypeError where we cannot have written it."""
    now, then = found.layout, found.after or Layout()
    for number in (found.generation, *asdict(now).values(), *asdict(then).values()):
        if type(number) is not int or not 0 <= number < _FARTHEST:
            raise ValueError("no position")
    if max(now.tail, then.tail) > 2 or not now.head <= now.tail_at <= now.live_at:  # noqa: PLR2004
        raise ValueError("no layout")
    if max(len(bytes.fromhex(each)) for each in (found.token, found.covered)) > _TOKEN:
        raise ValueError("no token")


def token_is_there(fd: int, found: LogMap) -> bool:
    return os.pread(fd, _TOKEN, 0).hex() == found.token


def layout_when_emptied(path: str, found: LogMap) -> Layout:
    """What holds from the moment on in which the log was emptied."""
    after = found.after or found.layout
    end = after.tail_at + tail_length(path, after)
    return replace(after, live_at=max(after.live_at, end))


def tail_length(path: str, layout: Layout) -> int:
    return os.stat(tail_path(path, layout)).st_size if layout.tail else 0


def shorten(path: str, bounds: LogBounds, *, final: bool = False) -> BoundResult:
    """Repair what a killed keeper left, and move the end of the log to a new tail if it is due."""
    try:
        log = open_plain(path, os.O_RDWR)
    except FileNotFoundError:
        return BoundResult(0, 0, copying=True)
    try:
        with moving(path, patience_s=_PATIENCE_S if final else 0.0):
            return _shorten(path, log, bounds, final=final)
    finally:
        os.close(log)


def _shorten(path: str, log: int, bounds: LogBounds, *, final: bool) -> BoundResult:
    steady = _repair(path, log)
    size = os.fstat(log).st_size
    slack = LEAST_MOVE if final else max(bounds.slack, LEAST_MOVE)
    if size > bounds.tail + slack + (0 if steady.layout.tail else bounds.head):
        steady = _move(path, log, size, steady, bounds)
        size = os.fstat(log).st_size
    if final:
        steady = _trim(path, steady, max(0, bounds.tail - size))
    layout = steady.layout
    total = layout.live_at + size
    kept = layout.head + tail_length(path, layout) + size
    return BoundResult(total, max(0, total - kept), copying=True)


def _repair(path: str, log: int) -> LogMap:
    """Bring a move that was interrupted to one of its two ends."""
    found = parse_map(read_map_text(path))
    if found.state is State.STEADY:
        return found
    if found.state is State.MOVING and not token_is_there(log, found):
        return _settle(path, found, layout_when_emptied(path, found))
    found = _put(path, replace(found, state=State.MARKING))
    if token_is_there(log, found):
        os.pwrite(log, bytes.fromhex(found.covered), 0)
    return _settle(path, found, found.layout)


def _move(path: str, log: int, size: int, steady: LogMap, bounds: LogBounds) -> LogMap:
    """Copy the end of the log to a new tail, then empty the log."""
    old = steady.layout
    if not old.tail:
        _write_new(head_path(path), log, 0, bounds.head)
    after = Layout(
        head=old.head if old.tail else bounds.head,
        tail=_other(old.tail),
        tail_at=old.live_at + size - bounds.tail,
    )
    _write_new(tail_path(path, after), log, size - bounds.tail, bounds.tail)

    covered = os.pread(log, _TOKEN, 0)
    token = os.urandom(_TOKEN)
    marking = replace(steady, state=State.MARKING, after=after)
    marking = _put(path, replace(marking, token=token.hex(), covered=covered.hex()))
    os.pwrite(log, token, 0)
    # From here on readers wait, so none of them gets further than this.
    after = replace(after, live_at=old.live_at + os.fstat(log).st_size)
    moving = _put(path, replace(marking, state=State.MOVING, after=after))
    end = old.live_at + _empty(log, size, tail_path(path, after), bounds)
    emptied = layout_when_emptied(path, moving)
    return _settle(path, moving, replace(emptied, live_at=max(end, emptied.live_at)))


def _empty(log: int, copied: int, tail: str, bounds: LogBounds) -> int:
    """Copy what came meanwhile as well, then empty the log at once; its length before that."""
    most = copied + bounds.tail + bounds.slack  # a job that is faster than us must not hold us up
    # On a full disk, emptying the log is the help that is needed: what could not be copied is lost.
    with contextlib.suppress(OSError), _opened(tail, "ab") as file:
        for _ in range(_CATCH_UPS):
            size = os.fstat(log).st_size
            if copied >= size or copied >= most:
                break
            copied += _copy(file.fileno(), log, copied, min(size, most) - copied)
    size = os.fstat(log).st_size
    os.ftruncate(log, 0)
    return size


def _trim(path: str, steady: LogMap, most: int) -> LogMap:
    """Shorten the tail file alone: the log goes on after it as before."""
    layout = steady.layout
    spare = tail_length(path, layout) - most
    if spare <= LEAST_MOVE:
        return steady
    trimmed = replace(layout, tail=_other(layout.tail), tail_at=layout.tail_at + spare)
    with _opened(tail_path(path, layout), "rb") as old:
        _write_new(tail_path(path, trimmed), old.fileno(), spare, most)
    return _settle(path, steady, trimmed)


def _settle(path: str, moving: LogMap, layout: Layout) -> LogMap:
    steady = _put(path, LogMap(moving.generation, State.STEADY, layout))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(tail_path(path, replace(layout, tail=_other(layout.tail))))
    return steady


def _put(path: str, found: LogMap) -> LogMap:
    """Put a map in place, under a new number: two maps are never the same."""
    found = replace(found, generation=found.generation + 1)
    new = map_path(path) + ".new"
    with open(new, "w", encoding="ascii", opener=open_plain) as file:
        json.dump(asdict(found), file)
    os.rename(new, map_path(path))
    return found


def _other(tail: int) -> int:
    return 2 if tail == 1 else 1


def _write_new(path: str, source: int, offset: int, length: int) -> None:
    with _opened(path, "wb") as file:
        _copy(file.fileno(), source, offset, length)


def _opened(path: str, mode: Literal["ab", "rb", "wb"]) -> FileIO:
    return open(path, mode, buffering=0, opener=open_plain)


def _copy(target: int, source: int, offset: int, length: int) -> int:
    """Copy a range to the end of `target`; how much there was."""
    done = 0
    while done < length:
        data = os.pread(source, min(_COPY, length - done), offset + done)
        if not data:
            break
        done += len(data)
        while data:
            data = data[os.write(target, data) :]
    return done
