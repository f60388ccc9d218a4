"""How much a job has written, without reading any of it."""

import os

from backburner.work.log.stream import read_stream


def measure(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Bytes that the job has written to a stream, and how many of them are gone."""
    read = read_stream(path, last=0)
    return read.total, read.dropped
