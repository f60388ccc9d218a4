"""The bounded log of a task: kept small while it grows, read by cursor, folded for the reader.

`LogBounder` is for whoever keeps the task, `read_output` for everyone who wants to see it.
"""

from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import BoundResult, LogBounds
from backburner.work.log.cursor import Cursor
from backburner.work.log.fold import fold, strip_controls
from backburner.work.log.read import Chunk, Streams, read_output
from backburner.work.log.stream import Gap, Segment, StreamRead, read_stream

__all__ = [
    "BoundResult",
    "Chunk",
    "Cursor",
    "Gap",
    "LogBounder",
    "LogBounds",
    "Segment",
    "StreamRead",
    "Streams",
    "fold",
    "read_output",
    "read_stream",
    "strip_controls",
]
