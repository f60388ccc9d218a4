"""How much a job has written, without reading any of it."""

import os

from backburner.work.log.stream import PATIENCE_S, read_stream


def measure(path: str | os.PathLike[str], *, patience_s: float = PATIENCE_S) -> tuple[int, int]:
    """Bytes that the job has written to a stream, and how many of them are gone. See there."""
    read = read_stream(path, last=0, patience_s=patience_s)
    return read.total, read.dropped
