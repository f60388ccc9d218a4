"""Giving input to a running job: the client side of its holder's socket.

Blocking, and nothing is lost silently: what was taken is in the holder's hands in the order in
which it came, and what was not is an error that says so. Call it in a thread from an event loop.
"""

import contextlib
import os
import socket
import struct
import sys
import time
from collections import deque
from types import TracebackType
from typing import Self

from backburner.model.errors import (
    BackburnerError,
    InputNotYet,
    InputRefused,
    LimitReached,
    TimeIsUp,
)
from backburner.model.home import AttemptFolder
from backburner.model.input import WindowSize
from backburner.work.holder import frames
from backburner.work.process.condition import NotBegun, inspect

PATIENCE_S = 5.0
"""How long a job may not read its input, when there is no more room, before that is an error."""

MOST_PENDING = 1024 * 1024
"""What is kept for a job that does not read, in bytes; said in messages. The holder decides."""

_TIMEVAL = struct.Struct("ll")


def send(folder: AttemptFolder, data: bytes, *, patience_s: float = PATIENCE_S) -> None:
    """Give these bytes to the job, as they are; nothing is added.

    Up to 256 KiB are taken whole or not at all; of more, the error says how much was taken. Waits
    while the job reads. InputNotYet: it has not started; InputRefused: it has no input, has ended,
    or its input is closed; LimitReached: it does not read.
    """
    with InputLine(folder, patience_s) as line:
        line.send(data)


def send_eof(folder: AttemptFolder, *, patience_s: float = PATIENCE_S) -> None:
    """Tell the job that there is no more: after what was sent, its reads find the end.

    On a terminal this is Ctrl-D, after which more can be sent. A second time is no error. Raises
    what `send` does.
    """
    with InputLine(folder, patience_s) as line:
        line.ask(frames.EOF)


def give(folder: AttemptFolder, number: int, data: bytes | None) -> None:
    """Give a piece of up to 256 KiB, or the end. Given again with its number, it changes nothing.

    Numbers grow. Raises what `send` does.
    """
    with InputLine(folder) as line:
        if line.request(frames.NUMBER, frames.NUMBERED.pack(number)) == frames.TAKEN:
            return
        if data is None:
            line.ask(frames.EOF)
        else:
            line.ask(frames.DATA, data)


def resize(folder: AttemptFolder, rows: int, columns: int) -> None:
    """Set the size of the job's terminal. Raises what `send` does; UsageError: no such size."""
    size = WindowSize(columns, rows)
    with InputLine(folder) as line:
        line.ask(frames.RESIZE, frames.SIZE.pack(size.rows, size.columns))


class InputLine:
    """A connection to the holder of one job."""

    def __init__(self, folder: AttemptFolder, patience_s: float = PATIENCE_S) -> None:
        self._task = os.path.basename(folder.path).rpartition(".")[0]
        self._folder = folder
        self._patience_s = patience_s
        self._socket = self._connect(folder)
        self._reader = frames.FrameReader(frames.ANSWERS)
        self._received: deque[tuple[bytes, bytes]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; the job goes on."""
        self._socket.close()

    def fileno(self) -> int:
        """For an event loop, after `attach`."""
        return self._socket.fileno()

    # Requests that wait for their answer

    def send(self, data: bytes) -> None:
        """See `send` of this module."""
        view = memoryview(data)
        for start in range(0, len(view), frames.MAX_PAYLOAD):
            try:
                self.ask(frames.DATA, bytes(view[start : start + frames.MAX_PAYLOAD]))
            except BackburnerError as error:
                if start:
                    error.message += f"; the first {start:,} of {len(view):,} bytes were taken"
                    error.args = (error.message,)
                raise

    def ask(self, kind: bytes, payload: bytes = b"") -> None:
        """Send a request, and wait until it is granted."""
        refused = self.request(kind, payload)
        if refused is not None:
            raise self.refusal(refused)

    def request(self, kind: bytes, payload: bytes) -> bytes | None:
        """Send a request, and wait for its answer: None, or the word for why not."""
        try:
            # The holder reads whatever the job does; only its answer may have to wait for that.
            self._socket.settimeout(PATIENCE_S)
            self._socket.sendall(frames.frame(kind, payload))
            answer = self._answer(self._patience_s)
            if answer is None and kind == frames.DATA:
                # It has to say whether it took it after all; that does not depend on the job.
                self._socket.settimeout(PATIENCE_S)
                self._socket.sendall(frames.frame(frames.CANCEL))
                answer = self._answer(PATIENCE_S)
        except TimeoutError:
            answer = None
        except ConnectionError:
            raise self._gone() from None
        if answer is None:
            raise TimeIsUp(
                f"the input of {self._task} does not answer",
                remedy=f"perhaps it is suspended; see: backburner show {self._task}",
            )
        kind, word = answer
        return word if kind == frames.NO else None

    def _answer(self, patience_s: float) -> tuple[bytes, bytes] | None:
        """The next OK or NO; None when patience is at its end."""
        until = time.monotonic() + patience_s
        while True:
            while self._received:
                kind, payload = self._received.popleft()
                if kind in (frames.OK, frames.NO):
                    return kind, payload
            self._socket.settimeout(max(0.001, until - time.monotonic()))
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                return None
            self._read(data)

    # A terminal, in an event loop

    def attach(self) -> None:
        """From now on `receive` tells what the terminal shows, beginning with the last of it."""
        self.ask(frames.ATTACH)
        self._socket.setblocking(False)

    def receive(self) -> list[tuple[bytes, bytes]]:
        """The frames that are there; ConnectionResetError when the holder is gone."""
        if not self._received:  # some may have come with the answer before
            with contextlib.suppress(BlockingIOError):
                self._read(self._socket.recv(65536))
        found = list(self._received)
        self._received.clear()
        return found

    def transmit(self, data: bytes) -> int:
        """Send as much of these frames as there is room for; answers how many bytes."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    def _read(self, data: bytes) -> None:
        if not data:
            raise ConnectionResetError
        try:
            self._received += self._reader.feed(data)
        except ValueError:  # somebody else's socket lies there
            raise ConnectionResetError from None

    # What goes wrong

    def _connect(self, folder: AttemptFolder) -> socket.socket:
        try:
            at = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            raise self._not_yet() from None
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Not `settimeout`: where many connect at once, that would refuse instead of waiting.
        patience = _TIMEVAL.pack(int(self._patience_s), int(self._patience_s % 1 * 1e6))
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
        try:
            # Through a descriptor: the path of a socket may have 107 bytes only.
            name = f"/proc/self/fd/{at}/input" if sys.platform == "linux" else folder.input
            line.connect(name)
        except BlockingIOError:
            line.close()
            raise TimeIsUp(
                f"the input of {self._task} does not answer", remedy="try again later"
            ) from None
        except OSError as error:
            line.close()
            raise self._why_not(folder, error) from None
        finally:
            os.close(at)
        return line

    def _why_not(self, folder: AttemptFolder, error: OSError) -> BackburnerError:
        if os.path.exists(folder.result):
            return self._over()
        if isinstance(error, ConnectionRefusedError):
            return self._gone()
        if isinstance(error, FileNotFoundError):
            return self._without_input() if os.path.exists(folder.wrapper) else self._not_yet()
        return InputRefused(
            f"the input of {self._task} cannot be reached: {error.strerror}",
            remedy="run: backburner doctor",
        )

    def _gone(self) -> BackburnerError:
        # A start that was not carried through leaves a socket at which nobody listens.
        return self._not_yet() if isinstance(inspect(self._folder), NotBegun) else self._over()

    def _not_yet(self) -> BackburnerError:
        return InputNotYet(f"{self._task} has not started yet", remedy="wait for its start")

    def _over(self) -> BackburnerError:
        return InputRefused(
            f"{self._task} has ended", remedy=f"see how: backburner show {self._task}"
        )

    def _without_input(self) -> BackburnerError:
        return InputRefused(
            f"{self._task} was started without input",
            remedy="start it with --stdin or --pty (stdin=True or pty=True)",
        )

    def refusal(self, word: bytes) -> BackburnerError:
        """What a NO of the holder means."""
        match word:
            case frames.CLOSED:
                return InputRefused(
                    f"the input of {self._task} was closed before",
                    remedy="its end (--eof) was sent; start it again to send more",
                )
            case frames.DEAF:
                return InputRefused(
                    f"{self._task} has closed its input", remedy="it reads no more; see its output"
                )
            case frames.FULL:
                return LimitReached(
                    f"{self._task} does not read its input, and {MOST_PENDING // 1024} KiB wait",
                    remedy="send again when it reads, or stop it",
                )
            case frames.LONG:
                return LimitReached(
                    f"the terminal of {self._task} takes lines of 4,095 bytes at most",
                    remedy="send shorter lines, or start it with --stdin",
                )
            case frames.NO_TERMINAL:
                return InputRefused(
                    f"{self._task} has no terminal",
                    remedy=f"follow it with backburner logs -f {self._task}, "
                    f"give it input with backburner send {self._task} TEXT",
                )
            case frames.CROWDED:
                return LimitReached(
                    f"too many are connected to the input of {self._task}", remedy="try again"
                )
            case frames.SLOW:
                return LimitReached(
                    f"too much output of {self._task} was not read",
                    remedy=f"attach again; its log has all: backburner logs {self._task}",
                )
            case _:
                return InputRefused(
                    f"the input of {self._task} did not understand",
                    remedy="is it of another version? run: backburner doctor",
                )
