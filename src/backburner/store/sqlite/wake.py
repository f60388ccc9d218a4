"""Telling other processes that the record has changed.

Each listening process has a datagram socket in the home's `wake` folder, and a writer sends an
empty datagram to every one of them after its commit. Level-triggered: a datagram says only "look",
so a full queue or a lost one costs nothing but time, and `PRAGMA data_version`, looked at once a
second, catches what a writer that died between its commit and its datagrams did not say.

Addresses go through a descriptor of the folder, because a socket's path may have 107 bytes only
and a home may lie anywhere.
"""

import contextlib
import itertools
import os
import socket
import sys
import time

_TICK_NS = 100_000_000
_numbers = itertools.count()


class WakeFolder:
    """The sockets of all listeners of one home."""

    def __init__(self, path: str) -> None:
        os.makedirs(path, mode=0o700, exist_ok=True)
        self._path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        self._own: set[str] = set()
        self._others: list[str] = []
        self._listed: int | None = None

    def _address(self, name: str) -> str:
        if sys.platform == "linux":
            return f"/proc/self/fd/{self._fd}/{name}"
        return f"{self._path}/{name}"

    def listen(self) -> "WakeSocket | None":
        """A socket of our own; None where the file system has no sockets."""
        name = f"{os.getpid()}.{next(_numbers)}"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.setblocking(False)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._fd)  # of a dead process that had our pid
        try:
            listener.bind(self._address(name))
        except OSError:
            listener.close()
            return None
        self._own.add(name)
        return WakeSocket(self, name, listener)

    def wake_others(self) -> None:
        """Tell every listener but our own; the sockets of dead processes are removed."""
        try:
            self._list()
        except OSError:
            return  # the home is gone; there is nobody to tell
        for name in self._others:
            try:
                self._sender.sendto(b"", self._address(name))
            except ConnectionRefusedError:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=self._fd)
            except OSError:
                pass  # a full queue: that listener will look anyway

    def _list(self) -> None:
        """Look who listens, unless nobody came or went since we looked."""
        changed = os.fstat(self._fd).st_mtime_ns
        if changed != self._listed:
            self._others = [name for name in os.listdir(self._fd) if name not in self._own]
            # Two changes within a tick of the kernel's clock have the same time.
            settled = time.time_ns() - changed > _TICK_NS
            self._listed = changed if settled else None

    def forget(self, name: str) -> None:
        """The socket of this name is closed."""
        self._own.discard(name)
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._fd)

    def close(self) -> None:
        """Close what is open."""
        for name in list(self._own):
            self.forget(name)
        self._sender.close()
        os.close(self._fd)


class WakeSocket:
    """The listening end of one process."""

    def __init__(self, folder: WakeFolder, name: str, listener: socket.socket) -> None:
        self._folder = folder
        self._name = name
        self._listener = listener

    def fileno(self) -> int:
        """For an event loop."""
        return self._listener.fileno()

    def drain(self) -> None:
        """Forget every datagram: one look serves for all."""
        with contextlib.suppress(OSError):
            while True:
                self._listener.recv(1)

    def close(self) -> None:
        """Stop listening."""
        self._folder.forget(self._name)
        self._listener.close()
