"""The program of a wrap: two processes, so that a parked call outlives its client.

Clients end their servers with the conversation, and some kill them. So the process that a client
knows only waits; one of its own session does the work, talks over the same pipes or listens for
HTTP, and stays for as long as something goes on in the background. A client that comes back has a
new one, finds the tasks of its session in the record, and is told how they ended.
"""

import asyncio
import contextlib
import os
import select
import signal
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from backburner.model.address import LOOPBACK

if TYPE_CHECKING:
    from backburner.mcp.wrap.server import Server
    from backburner.mcp.wrap.serving import Door

BUDGET_S = 30.0
"""Clients give up on a call after a minute or two; half of the shortest is safe."""

_STAYS = b"s"
"""The worker says that it goes on without its client."""
_TO_LEAVE_S = 5.0
"""What a worker has for ending, or saying that it stays, once its client is gone."""


def run(
    target: str | Sequence[str],
    *,
    home: str | os.PathLike[str] | None = None,
    session: str | None = None,
    budget_s: float | None = BUDGET_S,
    port: int | None = None,
    host: str = LOOPBACK,
    tokens: bool = False,
    announce: Callable[[str], None] = lambda _: None,
) -> int:
    """Serve before a command or a URL. Answers an exit status.

    One client on standard input and output, or with ``port`` any number over HTTP, at an address
    that ``announce`` is told, with ``tokens`` for those who show one. Without a ``session``
    each has one by its name and folder. ``budget_s`` is None for calls that are never parked.
    """
    from backburner.mcp.transports import listen
    from backburner.mcp.wrap.server import Server
    from backburner.mcp.wrap.serving import Door
    from backburner.runtime.home import home_of

    # What is wrong with either is said before anything is started.
    server = Server(target, shared=home_of(home).shared)
    door = None if port is None else Door(listen(port, host), announce, tokens)
    said, saying = os.pipe()
    life, living = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.setsid()
        os.close(said)
        os.close(living)
        _work(server, home, session, budget_s, door=door, saying=saying, life=life)
    os.close(saying)
    os.close(life)
    if door is not None:
        door.listening.close()
    return _wait(worker, said, living)


def _wait(worker: int, said: int, living: int) -> int:
    """What the client sees: here for as long as the worker serves it."""
    asked, asking = os.pipe()

    def leave(_: int, __: FrameType | None) -> None:
        os.write(asking, b".")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)
    _until_readable((said, asked), None)
    if not _until_readable((said,), 0):  # we are asked to go, and tell the worker
        os.close(living)
        _until_readable((said,), _TO_LEAVE_S)
    if not _until_readable((said,), 0) or os.read(said, 1) == _STAYS:
        return 0
    return os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])


def _until_readable(descriptors: Sequence[int], seconds: float | None) -> bool:
    return bool(select.select(descriptors, (), (), seconds)[0])


def _work(
    server: "Server",
    home: str | os.PathLike[str] | None,
    session: str | None,
    budget_s: float | None,
    *,
    door: "Door | None",
    saying: int,
    life: int,
) -> NoReturn:
    """What does the work. It leaves without waiting for a thread that still reads."""
    from backburner.mcp.wrap.serving import serve

    status = 1
    try:
        stays = partial(_detach, saying)
        asyncio.run(serve(server, home, session, budget_s, door=door, stays=stays, life=life))
        status = 0
    except BaseException as error:  # noqa: BLE001 - the last place to say anything
        os.write(2, f"backburner: {error}\n".encode(errors="replace"))
    finally:
        os._exit(status)


def _detach(saying: int) -> None:
    """Nobody is there any more: let go of everything that a client may wait for."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    with contextlib.suppress(BrokenPipeError):  # who waited was killed
        os.write(saying, _STAYS)
