"""Real jobs that write to a log as a task's process does, and what they are known to have written.

`seq` is the flood: it writes hundreds of megabytes a second, and every byte of it can be told
from its position alone.
"""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running_job(log: Path, *command: str) -> Generator[subprocess.Popen[bytes]]:
    """Start a job whose standard output is the log, opened for appending; end it afterwards."""
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=fd)
    finally:
        os.close(fd)
    try:
        yield job
    finally:
        job.kill()
        job.wait()


def seq_size(last: int) -> int:
    """How many bytes `seq 1 LAST` writes."""
    size = 0
    digits, first = 1, 1
    while first <= last:
        size += (min(last, first * 10 - 1) - first + 1) * (digits + 1)
        digits, first = digits + 1, first * 10
    return size


def seq_bytes(start: int, end: int) -> bytes:
    """What `seq 1 …` writes between two positions."""
    digits, first, before = 1, 1, 0
    while before + 9 * first * (digits + 1) <= start:
        before += 9 * first * (digits + 1)
        digits, first = digits + 1, first * 10
    number = first + (start - before) // (digits + 1)
    at = seq_size(number - 1)
    lines: list[bytes] = []
    position = at
    while position < end:
        line = b"%d\n" % number
        lines.append(line)
        position += len(line)
        number += 1
    return b"".join(lines)[start - at : end - at]


def on_disk(log: Path) -> int:
    """Bytes that the log, and what lies beside it, take on the disk."""
    return sum(path.stat().st_blocks * 512 for path in log.parent.glob(log.name + "*"))
