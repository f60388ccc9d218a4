"""A mark that every descendant of a task inherits, and that costs nothing.

The soft limit of RLIMIT_RTTIME, in microseconds, is set to an astronomically large number that is
derived from the task: no effect (it concerns real-time processes that never block for 146,000
years), needs no privilege, and is inherited through fork and exec, so it survives what the other
signs do not: a cleared environment, a new session, a double fork, closed descriptors and a
rewritten title. Only a process that sets this very limit loses it: at what no mark can be it has
none, and at what one can be it is taken for another attempt's.
"""

import contextlib
import re
import resource
import sys
from collections.abc import Generator

from backburner.work.process.identity import read_proc

_RTTIME = 15
"""The same number on every Linux architecture; the standard library has no name for it."""

_BASE = 1 << 62
_BYTES = 7
_MARKS = range(_BASE, _BASE + (1 << 8 * _BYTES))
_LIMIT_LINE = re.compile(rb"^Max realtime timeout +(\d+) ", re.MULTILINE)

Mark = int


def mark_for(home: str, task_id: str, attempt: int) -> Mark:
    """The mark of one attempt: 56 bits, so two tasks of one machine do not meet."""
    import hashlib  # brings OpenSSL along, which a guardian has no use for

    digest = hashlib.blake2b(f"{home}\0{task_id}\0{attempt}".encode(), digest_size=_BYTES).digest()
    return _BASE | int.from_bytes(digest, "big")


@contextlib.contextmanager
def marking_children(mark: Mark) -> Generator[bool]:
    """Children started inside carry the mark. Yields whether that is possible here."""
    if sys.platform != "linux":
        yield False
        return
    soft, hard = resource.getrlimit(_RTTIME)
    if hard != resource.RLIM_INFINITY:
        yield False  # an administrator has limited real-time work: not ours to touch
        return
    resource.setrlimit(_RTTIME, (mark, hard))
    try:
        yield True
    finally:
        resource.setrlimit(_RTTIME, (soft, hard))


def mark_of(pid: int | str) -> Mark | None:
    """The mark that a process carries."""
    try:
        number, _ = resource.prlimit(0 if pid == "self" else int(pid), _RTTIME)
    except PermissionError:  # another user's, perhaps through sudo: this anyone may read
        match = _LIMIT_LINE.search(read_proc(pid, "limits"))
        number = int(match[1]) if match else 0
    except OSError:
        return None  # gone
    return number if number in _MARKS else None


def clear_own_mark() -> None:
    """This process belongs to no task, though it was started from inside one."""
    if sys.platform == "linux" and mark_of("self") is not None:
        _, hard = resource.getrlimit(_RTTIME)
        resource.setrlimit(_RTTIME, (hard, hard))
