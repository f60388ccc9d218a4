"""The job's side of its report: adding lines to it. Loads nothing: scripts do this in loops.

A line is one write to a file that is open for appending, which no other process can come between:
any number of processes may report at once.
"""

import os

VARIABLE = "BACKBURNER_REPORT"
"""Where a job finds the path of its report."""


def report_path() -> str | None:
    """The report of the job that this process belongs to; None where it belongs to none."""
    path = os.environ.get(VARIABLE)
    # The folder goes when the task is forgotten, and what it has left running is no job any more.
    return path if path and os.path.isdir(os.path.dirname(path)) else None


def quoted(text: str) -> str:
    """A text as JSON says it."""
    try:
        from _json import encode_basestring_ascii  # what json would use, without loading the rest
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)


def append(path: str, key: str, value: str) -> None:
    """Report something; ``value`` is JSON without line breaks. OSError where that cannot be."""
    line = f'{{"{key}": {value}}}\n'.encode()
    # Not waiting where it is a pipe, and not through a link: it is meant to be a plain file.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    try:
        written = os.write(fd, line)
    finally:
        os.close(fd)
    if written < len(line):
        import errno

        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
