"""Serving a job and its clients until the job has ended.

Nothing that a client does can slow the job down: what it sends is bounded, what it does not read is
dropped, and there are only so many of them.
"""

import os
import select
import signal
import socket
import time

from backburner.work.holder import frames
from backburner.work.holder.client import Client
from backburner.work.holder.screen import Screen
from backburner.work.holder.source import Pipe, Terminal

_LOG = 1
_MOST_CLIENTS = 32
_DRAIN = 1024 * 1024
"""After the end of the job, of processes that it left in its terminal: no more than this."""
_FAREWELL_S = 0.5
"""For clients that are attached to read the last of it."""

_HANG_UP = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Service:
    """Stands between one job and everybody who gives it input or watches its terminal."""

    def __init__(self, source: Pipe | Terminal, pid: int, listener: int) -> None:
        self._source = source
        source.on_close = self._ignore
        self._pid = pid
        self._end = os.pidfd_open(pid)
        self._listener = socket.socket(fileno=listener)
        self._listener.setblocking(False)
        self._screen = Screen(_LOG)
        self._clients: dict[int, Client] = {}
        self._waiting: list[Client] = []
        """Whose DATA is held, in the order in which it came."""
        self._taken = 0
        """The number of the last piece that had one."""
        self._poll = select.poll()
        self._watched: dict[int, int] = {}

    def serve(self) -> int:
        """Until the job has ended. Answers its status."""
        if isinstance(self._source, Terminal):
            signal.signal(signal.SIGTERM, self._asked_to_end)
        self._watch(self._end, select.POLLIN)
        self._watch(self._listener.fileno(), select.POLLIN)
        while True:
            self._watch_source()
            for fd, events in self._poll.poll():
                if fd == self._end:
                    return self._over()
                if fd == self._listener.fileno():
                    self._welcome()
                elif fd == self._source.fd:
                    self._hear_job(events)
                elif fd in self._clients:
                    self._hear(self._clients[fd], events)

    def _asked_to_end(self, *_: object) -> None:
        """A shell at its prompt ignores TERM; it leaves when its terminal is hung up."""
        ignored = 1 << (signal.SIGTERM - 1)
        try:
            with open(f"/proc/{self._pid}/status", "rb") as file:
                line = next(line for line in file if line.startswith(b"SigIgn:"))
            if int(line.split()[1], 16) & ignored:
                signal.pidfd_send_signal(self._end, signal.SIGHUP)
        except (OSError, StopIteration):
            pass

    def _watch(self, fd: int, events: int) -> None:
        if self._watched.get(fd) != events:
            self._poll.register(fd, events)
            self._watched[fd] = events

    def _ignore(self, fd: int) -> None:
        if self._watched.pop(fd, None) is not None:
            self._poll.unregister(fd)

    # The job

    def _watch_source(self) -> None:
        source = self._source
        if source.open:
            # Errors are told in any case: of a pipe, that the job has closed it.
            events = select.POLLIN if source.terminal else 0
            self._watch(source.fd, events | (select.POLLOUT if source.pending else 0))

    def _hear_job(self, events: int) -> None:
        source = self._source
        if isinstance(source, Terminal):
            if events & select.POLLIN:
                self._show(source.read())
        elif events & _HANG_UP:
            source.close(deaf=True)
        if events & select.POLLOUT:
            source.flush()
        self._try_held()

    def _show(self, output: bytes) -> None:
        if not output:
            return
        self._screen.show(output)
        for client in list(self._clients.values()):
            if client.attached:
                client.tell(frames.OUTPUT, output)
                self._see_to(client)

    def _over(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        if isinstance(self._source, Terminal):
            self._source.let_go()
            drained = 0
            while drained < _DRAIN and (output := self._source.read()):
                drained += len(output)
                self._show(output)
            for client in self._clients.values():
                if client.attached:
                    client.tell(frames.END)
            self._farewell()
        return status

    def _farewell(self) -> None:
        """Give who is attached a moment to read the last of it."""
        poll = select.poll()
        left = {fd: client for fd, client in self._clients.items() if client.waiting}
        for fd in left:
            poll.register(fd, select.POLLOUT)
        until = time.monotonic() + _FAREWELL_S
        while left and (rest := until - time.monotonic()) > 0:
            for fd, _ in poll.poll(rest * 1000):
                left[fd].flush()
                if not left[fd].waiting or left[fd].gone:
                    poll.unregister(fd)
                    del left[fd]

    # Clients

    def _welcome(self) -> None:
        try:
            line, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:  # no more descriptors: until somebody has left
            self._ignore(self._listener.fileno())
            return
        if len(self._clients) >= _MOST_CLIENTS:
            self._make_room()
        client = Client(line)
        if len(self._clients) >= _MOST_CLIENTS:
            client.dismiss(frames.CROWDED)
            client.close()
            return
        self._clients[line.fileno()] = client
        self._see_to(client)

    def _make_room(self) -> None:
        """The oldest that asks for nothing goes: nobody can keep others away by being silent."""
        for client in self._clients.values():
            if not client.useful:
                client.gone = True
                self._see_to(client)
                return

    def _hear(self, client: Client, events: int) -> None:
        try:
            if events & select.POLLOUT:
                client.flush()
            if events & ~select.POLLOUT:
                for kind, payload in client.requests():
                    self._grant(client, kind, payload)
                    if client.leaving:
                        break
        except Exception:  # noqa: BLE001 - no fault of ours may end the job
            client.gone = True
        self._see_to(client)
        self._try_held()

    def _see_to(self, client: Client) -> None:
        fd = client.fileno()
        if client.gone:
            self._clients.pop(fd, None)
            if client in self._waiting:
                self._waiting.remove(client)
            self._ignore(fd)
            client.close()
            self._watch(self._listener.fileno(), select.POLLIN)
        else:
            self._watch(fd, select.POLLIN | (select.POLLOUT if client.waiting else 0))

    def _grant(self, client: Client, kind: bytes, payload: bytes) -> None:
        if kind == frames.CANCEL:
            if client.held is not None:
                self._waiting.remove(client)
                client.held = None
                client.answer(frames.FULL)
        elif client.held is not None:  # it has to wait for its answer
            self._waiting.remove(client)
            client.dismiss(frames.GARBAGE)
        elif kind == frames.DATA:
            self._take(client, payload)
        elif kind == frames.EOF:
            self._answer(client, self._source.end())
        elif kind == frames.NUMBER:
            self._number(client, payload)
        elif kind == frames.RESIZE:
            self._resize(client, payload)
        else:
            self._attach(client)

    def _take(self, client: Client, data: bytes) -> None:
        # Behind those that wait already, or who sends little would keep out who sends much.
        refused = frames.FULL if self._waiting else self._source.take(data)
        if refused == frames.FULL:
            client.held = data
            self._waiting.append(client)
        else:
            self._answer(client, refused)

    def _try_held(self) -> None:
        while self._waiting:
            client = self._waiting[0]
            refused = self._source.take(client.held or b"")
            if refused == frames.FULL:
                return
            del self._waiting[0]
            client.held = None
            self._answer(client, refused)
            self._see_to(client)

    def _number(self, client: Client, payload: bytes) -> None:
        if len(payload) != frames.NUMBERED.size:
            client.dismiss(frames.GARBAGE)
            return
        (number,) = frames.NUMBERED.unpack(payload)
        client.number = number
        client.answer(frames.TAKEN if number <= self._taken else None)

    def _answer(self, client: Client, refused: bytes | None) -> None:
        """Of input, which may have a number."""
        if refused is None:
            self._taken = max(self._taken, client.number)
        client.number = 0
        client.answer(refused)

    def _resize(self, client: Client, payload: bytes) -> None:
        if len(payload) != frames.SIZE.size:
            client.dismiss(frames.GARBAGE)
            return
        rows, columns = frames.SIZE.unpack(payload)
        client.answer(self._source.resize(max(1, rows), max(1, columns)))

    def _attach(self, client: Client) -> None:
        if not self._source.terminal:
            client.answer(frames.NO_TERMINAL)
            return
        client.answer(None)
        client.attached = True
        client.tell(frames.REPLAY, self._screen.replay())
