"""Whether a job listens on a TCP port: a connection to it succeeds, and the port is the job's own.

Whose it is, /proc tells: a port that another program had open before is not our readiness. Where
/proc cannot tell, a connection to this machine has to do.
"""

import asyncio
import contextlib
import os
import re
import socket
import struct
from collections.abc import Callable, Iterable, Sequence

from backburner.model.values import value
from backburner.work.probe.probe import NOT_YET, Answer, Polled

_CONNECT_S = 1.0
_LISTENS = "0A"  # TCP_LISTEN, as /proc/net/tcp spells it
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_TABLES = {"/proc/net/tcp": socket.AF_INET, "/proc/net/tcp6": socket.AF_INET6}
_LOOPBACK = ("127.0.0.1", "::1")
_WILDCARD = {"0.0.0.0": ("127.0.0.1",), "::": ("::1", "127.0.0.1")}  # noqa: S104 - nothing is bound


@value
class Listener:
    """A socket that waits for connections."""

    address: str
    inode: str


class PortProbe(Polled):
    """Looks for a port that one of these processes listens on."""

    def __init__(self, port: int, processes: Callable[[], Sequence[int]]) -> None:
        self._port = port
        self._processes = processes

    async def look(self) -> Answer:
        """Whether it listens, and takes a connection."""
        # In a thread: on a machine with thousands of processes this takes a while.
        addresses = await asyncio.to_thread(self._addresses)
        if not addresses and addresses is not None:
            return NOT_YET
        if addresses is None:
            text = f"port {self._port} is open, but another program has it, and not this job"
            return Answer(ready=False, text=text)
        for address in addresses:
            if await _takes_connection(address, self._port):
                return Answer(ready=True, text=f"it listens on port {self._port}")
        return NOT_YET

    def _addresses(self) -> Sequence[str] | None:
        """Where to connect to; nothing where nobody listens, None where somebody else does."""
        found = listeners(self._port)
        if found is None:
            return _LOOPBACK
        if not found:
            return ()
        inodes = _sockets_of(self._processes())
        ours = [one for one in found if inodes is None or one.inode in inodes]
        if not ours:
            return None
        return [address for one in ours for address in _WILDCARD.get(one.address, (one.address,))]


def listeners(port: int) -> list[Listener] | None:
    """Who listens on a port of this machine; None where that cannot be known."""
    found: list[Listener] = []
    known = False
    for path, family in _TABLES.items():
        with contextlib.suppress(OSError), open(path, encoding="ascii") as table:
            known = True
            for row in table:
                words = row.split()
                local = words[1].rpartition(":")
                if words[3] == _LISTENS and int(local[2], 16) == port:
                    found.append(Listener(_address(local[0], family), words[9]))
    return found if known else None


def _address(digits: str, family: int) -> str:
    # The kernel prints each 32 bits of it as a number in the machine's own order.
    words = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    return socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words))


def _sockets_of(pids: Iterable[int]) -> set[str] | None:
    """The sockets that these processes hold; None where one of them does not let us see."""
    inodes: set[str] = set()
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except PermissionError:
            return None
        except OSError:
            continue  # gone
        for name in names:
            with contextlib.suppress(OSError):
                if match := _SOCKET.fullmatch(os.readlink(f"/proc/{pid}/fd/{name}")):
                    inodes.add(match[1])
    return inodes


async def _takes_connection(address: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(address, port)
    except (OSError, TimeoutError):
        return False
    writer.transport.abort()
    return True
