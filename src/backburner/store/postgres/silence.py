"""Hanging up on a database that stays silent: one that hangs, instead of dying, answers nobody.

The kernel of a machine whose database is stopped goes on to answer for it, and no limit of the
database's own holds for a commit that waits for another server. One thread looks after all
connections of a process, sleeps while none waits for an answer, and goes when that lasts.
"""

import contextlib
import math
import os
import socket
import struct
import threading
import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

SILENCE_S = 20.0
"""How long one answer is waited for while nothing comes of it, and nothing of the question goes."""

_LOOKS_EVERY_S = 0.5
_GOES_AFTER_S = 10.0

_SINCE_LAST = struct.Struct("=44xI4xI")
"""In the kernel's `tcp_info`: the milliseconds since data was last sent, and received."""

Result = TypeVar("Result")
_Row = tuple[Any, ...]


def hang_up(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """End it under whoever waits for an answer, in another thread."""
    with (
        contextlib.suppress(psycopg.Error, OSError),  # closed, or lost already
        socket.socket(fileno=os.dup(connection.fileno())) as line,
    ):
        line.shutdown(socket.SHUT_RDWR)


def _nothing_moved_for_s(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any],
) -> float:
    """A long answer may take its time on a slow wire. For ever where there is no wire."""
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            told = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _SINCE_LAST.size)
        return min(_SINCE_LAST.unpack(told)) / 1000
    except (psycopg.Error, OSError):  # lost already; or it is on this machine
        return math.inf


class Connection(psycopg.Connection[_Row]):
    """One whose caller is told that it is lost where it stays silent."""

    silence_s = SILENCE_S
    """More, or `math.inf`, where a statement may take longer than that."""

    def wait(self, gen: PQGen[Result], *arguments: Any, **named: Any) -> Result:
        """See psycopg.Connection: everything that is asked goes through here."""
        _watch.begin(self)
        try:
            return super().wait(gen, *arguments, **named)
        finally:
            _watch.end(self)


class AsyncConnection(psycopg.AsyncConnection[_Row]):
    """The same for an event loop."""

    silence_s = SILENCE_S

    async def wait(self, gen: PQGen[Result], *arguments: Any, **named: Any) -> Result:
        """See psycopg.AsyncConnection."""
        _watch.begin(self)
        try:
            return await super().wait(gen, *arguments, **named)
        finally:
            _watch.end(self)


class _Watch:
    """Over those who wait. To begin and to end costs two changes of a dictionary."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[float, Connection | AsyncConnection]] = {}
        self._hanging_up = threading.Lock()
        self._bell = threading.Event()
        self._sleeps = False
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, connection: Connection | AsyncConnection) -> None:
        self._waiting[id(connection)] = (time.monotonic(), connection)
        if self._sleeps:  # it looks once more after it has said so
            self._bell.set()
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def end(self, connection: Connection | AsyncConnection) -> None:
        if self._waiting.pop(id(connection), None) is None:
            with self._hanging_up:  # once it is closed, its socket's number may be another's
                self._waiting.pop(id(connection), None)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._sleeps = False
                self._thread = threading.Thread(
                    target=self._run, name="backburner-silence", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._bell.clear()
            self._sleeps = True
            if not self._waiting and not self._bell.wait(_GOES_AFTER_S) and self._is_done():
                return
            self._sleeps = False
            time.sleep(_LOOKS_EVERY_S)
            now = time.monotonic()
            for key, (since, connection) in list(self._waiting.items()):
                if now - since > connection.silence_s:
                    self._end(key, since)

    def _is_done(self) -> bool:
        """Whoever comes just now sees that it goes, or is seen."""
        with self._starting:
            thread, self._thread = self._thread, None
            if not self._waiting:
                return True
            self._thread = thread
            return False

    def _end(self, key: int, since: float) -> None:
        with self._hanging_up:
            found = self._waiting.pop(key, None)
            if found is None:
                return
            if found[0] == since and _nothing_moved_for_s(found[1]) > found[1].silence_s:
                hang_up(found[1])
            else:  # it is heard of; or it has had its answer, and asks something else
                self._waiting[key] = found


_watch = _Watch()


def _watch_anew() -> None:
    """The connections of a process belong to it, and not to a fork of it."""
    global _watch  # noqa: PLW0603 - locks and threads of before are no good there
    _watch = _Watch()


os.register_at_fork(after_in_child=_watch_anew)
