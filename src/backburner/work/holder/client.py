"""One connection to the holder. It is never waited for: what it does not read is bounded."""

import socket

from backburner.work.holder import frames

MOST_UNREAD = 1024 * 1024
"""Output that a client which is attached has not read; then it is dropped, with a word."""

_PIECE = 64 * 1024


class Client:
    """Reads requests, keeps answers until there is room for them."""

    def __init__(self, line: socket.socket) -> None:
        line.setblocking(False)
        self._line = line
        self._reader = frames.FrameReader(frames.REQUESTS)
        self._out: list[bytes] = []
        self._sent = 0
        """How much of the first frame is on its way: that one has to be finished."""
        self._unread = 0
        self.held: bytes | None = None
        """Its DATA, for which there was no room yet."""
        self.number = 0
        """Of what it sends next; 0 where that has none."""
        self.attached = False
        self.leaving = False
        """Nothing more is heard from it; it goes when its last answer is sent."""
        self.gone = False

    def fileno(self) -> int:
        return self._line.fileno()

    @property
    def useful(self) -> bool:
        """Whether it would be missed."""
        return self.attached or self.held is not None

    @property
    def waiting(self) -> bool:
        """Whether something is to be sent."""
        return bool(self._out)

    def requests(self) -> list[tuple[bytes, bytes]]:
        """What it asks for now."""
        try:
            data = self._line.recv(_PIECE)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.gone = True
            return []
        if self.leaving:
            return []
        try:
            return self._reader.feed(data)
        except ValueError:
            self.dismiss(frames.GARBAGE)
            return []

    def answer(self, refused: bytes | None) -> None:
        """OK, or why not."""
        self.tell(frames.OK if refused is None else frames.NO, refused or b"")

    def tell(self, kind: bytes, payload: bytes = b"") -> None:
        """Send it something, as far as it reads."""
        if self.gone or self.leaving:
            return
        if self._unread + len(payload) > MOST_UNREAD:
            self.dismiss(frames.SLOW)
            return
        self._put(frames.frame(kind, payload))

    def dismiss(self, reason: bytes) -> None:
        """The last that it hears."""
        # Answers stay: who comes back has to know what was taken.
        begun, rest = (self._out[:1], self._out[1:]) if self._sent else ([], self._out)
        self._out = begun + [each for each in rest if each[:1] in (frames.OK, frames.NO)]
        self.leaving = True
        self.held = None
        self.attached = False
        self._put(frames.frame(frames.NO, reason))

    def _put(self, frame: bytes) -> None:
        self._out.append(frame)
        self._unread += len(frame)
        self.flush()

    def flush(self) -> None:
        """Send what there is room for."""
        try:
            while self._out:
                sent = self._line.send(memoryview(self._out[0])[self._sent :])
                self._sent += sent
                self._unread -= sent
                if self._sent == len(self._out[0]):
                    del self._out[0]
                    self._sent = 0
        except BlockingIOError:
            return
        except OSError:
            self.gone = True
        if self.leaving:
            self.gone = True

    def close(self) -> None:
        """Hang up."""
        self._line.close()
