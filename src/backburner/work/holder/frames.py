"""What is said over the socket of a job with input: a kind, a length, a payload.

Bounded: a peer that announces more than MAX_PAYLOAD, or a kind that there is not, is not listened
to any longer. Pure; both ends use it.
"""

import struct

SOCKET_FD = 7
"""Where a holder finds its listening socket, which was made before its start: who connects before
that is heard later."""

_HEADER = struct.Struct(">cI")
SIZE = struct.Struct(">HH")
"""The payload of RESIZE: rows, columns."""
NUMBERED = struct.Struct(">Q")
"""The payload of NUMBER."""

MAX_PAYLOAD = 256 * 1024
"""What is sent in one frame is taken whole or not at all."""

# From a client. Each is answered by OK or NO, in this order, but for CANCEL.
DATA = b"D"
EOF = b"E"
RESIZE = b"R"
ATTACH = b"A"
NUMBER = b"N"
"""Of the DATA or EOF that follows: one that is not above the last that was taken is TAKEN. So who
does not know whether a piece arrived sends it again, and the job reads it once."""
CANCEL = b"C"
"""The client waits no longer for room for its DATA: that is answered at once."""

# From the holder.
OK = b"k"
NO = b"n"
"""The payload is one of the words below."""
REPLAY = b"p"
"""The last of what the terminal has shown before: questions to a terminal in it were answered."""
OUTPUT = b"o"
END = b"x"
"""The job has ended, and everything that it wrote was told."""

REQUESTS = frozenset((DATA, EOF, RESIZE, ATTACH, NUMBER, CANCEL))
ANSWERS = frozenset((OK, NO, REPLAY, OUTPUT, END))

CLOSED = b"closed"
"""Its end was sent before."""
DEAF = b"deaf"
"""The job has closed its input."""
FULL = b"full"
"""The job does not read what was sent before."""
LONG = b"long"
"""A line that a terminal would cut."""
NO_TERMINAL = b"no terminal"
TAKEN = b"taken"
"""What has this number, or a later one."""
GARBAGE = b"garbage"
CROWDED = b"crowded"
"""Too many are connected."""
SLOW = b"slow"
"""It did not read what it is attached to: dropped, so that the job is not slowed down."""


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """One frame, ready to be sent."""
    return _HEADER.pack(kind, len(payload)) + payload


class FrameReader:
    """Frames out of a stream of bytes."""

    __slots__ = ("_buffer", "_kinds")

    def __init__(self, kinds: frozenset[bytes]) -> None:
        self._kinds = kinds
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The frames that are whole now, as (kind, payload). ValueError: this is none."""
        self._buffer += data
        found: list[tuple[bytes, bytes]] = []
        at = 0
        while len(self._buffer) - at >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._buffer, at)
            if kind not in self._kinds or length > MAX_PAYLOAD:
                raise ValueError(f"no frame: {kind!r}, {length} bytes")
            end = at + _HEADER.size + length
            if len(self._buffer) < end:
                break
            found.append((kind, bytes(self._buffer[at + _HEADER.size : end])))
            at = end
        del self._buffer[:at]
        return found
