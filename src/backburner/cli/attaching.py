"""A person's terminal as the terminal of a job, for a while.

The terminal is put back as it was on every way out. Leaving never touches the job.
"""

import asyncio
import contextlib
import os
import re
import signal
import sys
import termios
import tty
from collections import deque
from collections.abc import Callable, Generator
from enum import Enum, auto

from backburner.cli.detachkey import DetachKey
from backburner.model.errors import BackburnerError, InputRefused
from backburner.work.holder import frames
from backburner.work.holder.modes import Modes
from backburner.work.input import InputLine

_MOST_TYPED = 64 * 1024
"""What is kept of keys that the job does not take; then the bell rings, as terminals do."""

_LAST_WORDS = (frames.GARBAGE, frames.CROWDED)
"""After these the holder says nothing more."""

# Questions to a terminal in what was shown before: they were answered then. This terminal would
# answer again, and the job would take it for keys.
_QUESTIONS = re.compile(
    rb"\x1b\[[0-9;?>=]*[nct]|\x1b\[>[0-9]*q|\x1b\[\??[0-9;]*\$p|\x1b\[\?u|\x1bZ|\x05"
    rb"|\x1b\][0-9;]*\?(?:\x07|\x1b\\)|\x1bP[+$]q[^\x1b]*\x1b\\"
)

_INTERRUPT = b"\x03"


class Parting(Enum):
    """Why it is over."""

    DETACHED = auto()
    """The person has pressed the key."""
    ENDED = auto()
    """The job has ended."""
    SENT_AWAY = auto()
    """This terminal was closed, or this program was asked to end."""


class Attachment:
    """Keys to the job, what it shows to the screen."""

    def __init__(
        self, connect: Callable[[], InputLine], key: DetachKey, *, read_only: bool
    ) -> None:
        self._connect = connect
        self._line = connect()
        self._key = key
        self._read_only = read_only
        self._loop = asyncio.get_running_loop()
        self._parting: asyncio.Future[Parting] = self._loop.create_future()
        self._modes = Modes()
        self._requests: deque[tuple[bytes, bytes]] = deque()
        self._asked: tuple[bytes, bytes] | None = None
        """The request that is on its way: the next one goes when it is answered."""
        self._typed = bytearray()
        self._out = b""

    async def last(self) -> Parting:
        """Until somebody leaves. BackburnerError: the job's side could not go on."""
        stdin = sys.stdin.fileno()
        try:
            self._line.attach()
            with self._raw_terminal(), self._heeding_signals():
                self._loop.add_reader(stdin, self._keys)
                self._listen()
                self._tell_size()
                try:
                    return await self._parting
                finally:
                    self._loop.remove_reader(stdin)
                    self._deafen()
        finally:
            self._line.close()

    # The person's side

    @contextlib.contextmanager
    def _raw_terminal(self) -> Generator[None]:
        stdin = sys.stdin.fileno()
        before = termios.tcgetattr(stdin)
        try:
            tty.setraw(stdin, termios.TCSADRAIN)  # what was typed ahead is not lost
            yield
        finally:
            # What the job has switched on or drawn below is not for the shell that comes after it.
            self._show(self._modes.undo() + b"\x1b[0m\r\n\x1b[J")
            with contextlib.suppress(termios.error):  # the terminal was closed
                termios.tcsetattr(stdin, termios.TCSADRAIN, before)

    @contextlib.contextmanager
    def _heeding_signals(self) -> Generator[None]:
        leaving = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
        for number in leaving:
            self._loop.add_signal_handler(number, self._part, Parting.SENT_AWAY)
        self._loop.add_signal_handler(signal.SIGWINCH, self._tell_size)
        try:
            yield
        finally:
            for number in (*leaving, signal.SIGWINCH):
                self._loop.remove_signal_handler(number)

    def _part(self, why: Parting | BaseException) -> None:
        if self._parting.done():
            return
        if isinstance(why, Parting):
            self._parting.set_result(why)
        else:
            self._parting.set_exception(why)

    def _keys(self) -> None:
        try:
            typed = os.read(sys.stdin.fileno(), 65536)
        except OSError:
            typed = b""
        if not typed:
            self._part(Parting.SENT_AWAY)
            return
        keys, leave = self._key.split(typed)
        if self._read_only:
            leave = leave or _INTERRUPT in keys
        elif len(self._typed) + len(keys) > _MOST_TYPED:
            self._show(b"\a")
        else:
            self._typed += keys
            self._ask()
        if leave:
            self._part(Parting.DETACHED)

    def _tell_size(self) -> None:
        if self._read_only:
            return
        with contextlib.suppress(OSError):
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
            if columns > 0 and rows > 0:  # a terminal that does not know its size says 0
                self._requests.append((frames.RESIZE, frames.SIZE.pack(rows, columns)))
                self._ask()

    def _show(self, output: bytes) -> None:
        left = memoryview(output)
        try:
            while left:
                left = left[os.write(sys.stdout.fileno(), left) :]
        except OSError:  # the terminal was closed
            self._part(Parting.SENT_AWAY)

    # The job's side

    def _listen(self) -> None:
        self._loop.add_reader(self._line.fileno(), self._news)
        self._news()  # what came with the word that we are attached

    def _deafen(self) -> None:
        self._loop.remove_reader(self._line.fileno())
        self._loop.remove_writer(self._line.fileno())

    def _come_back(self) -> None:
        """We were dropped because this terminal is slower than the job: go on with the newest."""
        self._deafen()
        self._line.close()
        self._out = b""
        if self._asked is not None:  # without an answer it was not taken
            self._requests.appendleft(self._asked)
            self._asked = None
        try:
            self._line = self._connect()
            self._line.attach()
        except InputRefused:
            self._part(Parting.ENDED)
            return
        except BackburnerError as error:
            self._part(error)
            return
        self._show(b"\r\n[backburner: output was skipped here; the log has it]\r\n")
        self._listen()
        self._ask()

    def _ask(self) -> None:
        """The next request, if none is on its way: each is answered before the next."""
        if self._asked is not None:
            return
        if not self._requests and self._typed:
            self._requests.append((frames.DATA, bytes(self._typed)))
            self._typed.clear()
        if self._requests:
            self._asked = self._requests.popleft()
            self._out += frames.frame(*self._asked)
            self._transmit()

    def _transmit(self) -> None:
        try:
            self._out = self._out[self._line.transmit(self._out) :]
        except OSError:
            self._part(Parting.ENDED)
            return
        if self._out:
            self._loop.add_writer(self._line.fileno(), self._transmit)
        else:
            self._loop.remove_writer(self._line.fileno())

    def _news(self) -> None:
        try:
            news = self._line.receive()
        except OSError:  # without a farewell: its holder was killed
            self._part(Parting.ENDED)
            return
        for kind, payload in news:
            self._hear(kind, payload)

    def _hear(self, kind: bytes, payload: bytes) -> None:
        if kind in (frames.OUTPUT, frames.REPLAY):
            output = _QUESTIONS.sub(b"", payload) if kind == frames.REPLAY else payload
            self._modes.feed(output)
            self._show(output)
        elif kind == frames.END:
            self._part(Parting.ENDED)
        elif kind == frames.NO and payload == frames.SLOW:
            self._come_back()
        elif kind == frames.NO and payload in _LAST_WORDS:
            self._part(self._line.refusal(payload))
        else:
            if kind == frames.NO:
                self._show(b"\a")
            self._asked = None
            self._ask()
