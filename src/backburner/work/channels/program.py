"""Handing a signal to a program of the owner: a command hook, or the one that shows notifications.

It gets the signal on its standard input and in its environment, never in its command line. It has
its own process group and mark, so that one that hangs is ended with everything it started, by
whoever comes after us if need be; what it prints is read slowly and kept to its last line.
"""

import contextlib
import html
import os
import select
import shutil
import signal as signals
import subprocess
import time
from collections.abc import Mapping
from typing import BinaryIO

from backburner.model.home import Home
from backburner.model.signals import Signal, SignalKind
from backburner.model.values import value
from backburner.work.channels.outcome import Delivered, Letter, Outcome, failed
from backburner.work.process.identity import open_pidfd
from backburner.work.process.mark import marking_children
from backburner.work.process.tree import Tree

_TAIL_BYTES = 4096
_LINE_MAX_CHARS = 1000
_TEXT_MAX_CHARS = 8000
"""The kernel takes 128 KiB for one variable; nobody reads as much."""

_FREELY_BYTES = 1024 * 1024
_NAP_S = 0.01
"""After a megabyte, 64 KiB are read this often: a flood must not cost the keeper a core."""

_CHUNK = 65536

_ROUNDS = 5
_DIES_WITHIN_S = 1.0

_HEADLINES = {
    SignalKind.COMPLETED: "Task finished",
    SignalKind.FAILED: "Task failed",
    SignalKind.CANCELED: "Task stopped",
    SignalKind.INPUT_REQUIRED: "Task asks",
    SignalKind.READY: "Task is ready",
    SignalKind.MATCH: "Task says",
    SignalKind.SILENT: "Task is silent",
}
_URGENT = (SignalKind.FAILED, SignalKind.INPUT_REQUIRED)


@value
class Program:
    """What is run, and where."""

    argv: list[str]
    environment: dict[str, str]
    cwd: str


def command_program(line: str, letter: Letter, home: Home, base: Mapping[str, str]) -> Program:
    """The owner's line, as a shell runs it."""
    return Program(["/bin/sh", "-c", line], _environment(letter, home, base), _folder(base))


def desktop_program(bus: str, letter: Letter, home: Home, base: Mapping[str, str]) -> Program:
    """The notification. Its text may have what looks like markup, and no options."""
    environment = _environment(letter, home, base)
    if bus:
        environment["DBUS_SESSION_BUS_ADDRESS"] = bus
    runtime = f"/run/user/{os.getuid()}"
    if os.path.isdir(runtime):
        environment.setdefault("XDG_RUNTIME_DIR", runtime)
    kind = letter.signal.kind
    urgency = "critical" if kind in _URGENT else "normal"
    text = html.escape(_shown(letter.signal), quote=False)
    options = ["--app-name=Backburner", f"--urgency={urgency}"]
    argv = [find_notifier() or "notify-send", *options, "--", _HEADLINES[kind], text]
    return Program(argv, environment, _folder(base))


def find_notifier() -> str | None:
    """The program that shows notifications."""
    return shutil.which("notify-send")


def _shown(signal: Signal) -> str:
    return signal.text[:_TEXT_MAX_CHARS].replace("\0", "\ufffd")


def _environment(letter: Letter, home: Home, base: Mapping[str, str]) -> dict[str, str]:
    signal = letter.signal
    # The task's id is not under the name that a job has it under: this is no part of the job, and
    # what looks like one would be ended with it.
    return {
        **base,
        "BACKBURNER_HOME": str(home.root),
        "BACKBURNER_SESSION": signal.session,
        "BACKBURNER_SIGNAL_KIND": signal.kind.value,
        "BACKBURNER_SIGNAL_TASK": signal.task,
        "BACKBURNER_SIGNAL_KEY": signal.key,
        "BACKBURNER_SIGNAL_TEXT": _shown(signal),
    }


def _folder(base: Mapping[str, str]) -> str:
    home = base.get("HOME", "")
    return home if os.path.isdir(home) else "/"


class Run:
    """One delivery through a program."""

    def __init__(self, program: Program, letter: Letter, home: Home, *, limit_s: float) -> None:
        name = f"delivery {letter.signal.key}"  # no id of a task has a blank
        self._tree = Tree(str(home.root), name, 1, None)
        self._program = program
        self._letter = letter
        self._limit_s = limit_s
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Outcome | None:
        """Start it; what there is to say where it cannot be.

        In the thread that starts jobs: the mark is for a moment that of this whole process.
        """
        try:
            with (
                _readable(self._letter.signal_json() + b"\n") as given,
                marking_children(self._tree.mark),
            ):
                self._process = subprocess.Popen(
                    self._program.argv,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=self._program.environment,
                    cwd=self._program.cwd,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return failed(f"it could not be started: {reason}: {self._program.argv[0]}")
        return None

    def carry_out(self) -> Outcome:
        """Wait for its end, in a thread."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        tail = _Tail()
        with process.stdout as output:
            in_time = _follow(process, output.fileno(), tail, time.monotonic() + self._limit_s)
            if not in_time:
                self.end()
        status = process.wait()
        if not in_time:
            return failed(f"it took longer than {self._limit_s:g} s, and was ended")
        if status == 0:
            return Delivered()
        how = f"exit code {status}" if status > 0 else f"killed by signal {-status}"
        last = tail.last_line()
        return failed(f"{how}: {last}" if last else how)

    def end(self) -> None:
        """KILL for everything of it, and of an earlier try whose keeper was killed perhaps."""
        if self._process is not None and self._process.returncode is None:
            # Not collected yet, so the number is nobody else's.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signals.SIGKILL)
        for _ in range(_ROUNDS):
            if not (dying := self._tree.kill()):
                return
            for fd in dying:
                dead = select.poll()  # a keeper may have more descriptors than select can take
                dead.register(fd, select.POLLIN)
                dead.poll(_DIES_WITHIN_S * 1000)
                os.close(fd)


def _readable(content: bytes) -> BinaryIO:
    """A file in memory: a full disk does not keep anybody from being told so."""
    file = open(os.memfd_create("backburner-signal"), "w+b")  # noqa: SIM115 - closed by the caller
    file.write(content)
    file.seek(0)
    return file


class _Tail:
    """The end of what was printed."""

    def __init__(self) -> None:
        self._kept = b""
        self._cut = False
        self.total = 0

    def add(self, part: bytes) -> None:
        self.total += len(part)
        kept = self._kept + part
        self._cut = self._cut or len(kept) > _TAIL_BYTES
        self._kept = kept[-_TAIL_BYTES:]

    def last_line(self) -> str:
        lines = self._kept.decode(errors="replace").split("\n")
        if self._cut:
            lines[0] = ""  # its beginning is lost, and with it what would tell that it is a secret
        return next(
            (line.strip()[:_LINE_MAX_CHARS] for line in reversed(lines) if line.strip()), ""
        )


def _follow(process: "subprocess.Popen[bytes]", output: int, tail: _Tail, deadline: float) -> bool:
    """Read what it prints until it ends. False when time is up."""
    os.set_blocking(output, False)
    pidfd = open_pidfd(process.pid)
    if pidfd is None:
        return True  # it has ended and was collected
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(output, select.POLLIN)
    try:
        while (left := deadline - time.monotonic()) > 0:
            ready = dict(poll.poll(left * 1000))
            if output in ready and not _read(output, tail):
                poll.unregister(output)  # closed by it; its end is still to come
            if pidfd in ready:
                _read(output, tail)
                return True
            if tail.total > _FREELY_BYTES:
                time.sleep(_NAP_S)
        return False
    finally:
        os.close(pidfd)


def _read(output: int, tail: _Tail) -> bool:
    """One piece. False when there will be no more."""
    try:
        part = os.read(output, _CHUNK)
    except BlockingIOError:
        return True
    tail.add(part)
    return bool(part)
