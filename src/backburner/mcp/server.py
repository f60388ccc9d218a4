"""Serving MCP from an open Backburner: what an application calls, and `backburner mcp`."""

import logging
import sys
from collections.abc import Callable, Collection
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from backburner.mcp.service import Service
from backburner.model.address import LOOPBACK
from backburner.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from backburner.app import Backburner
    from backburner.mcp.reception import Reception
    from backburner.work.tools.registry import Registry

_log = logging.getLogger("backburner.mcp")

DEFAULT_BUDGET_S = 30.0
"""Common clients give up on a call after a minute."""


@asynccontextmanager
async def opened(
    bb: "Backburner",
    session: str | None = None,
    registry: "Registry | None" = None,
    *,
    budget_s: float = DEFAULT_BUDGET_S,
    only_as_tasks: Collection[str] = (),
) -> "AsyncGenerator[Reception]":
    """A server for an open Backburner, to be run on a transport. See `serve`."""
    for tool in registry or ():
        if bb.registry.find(tool.name) is not tool:
            bb.registry.register(tool)
    taken = [name for name in bb.session("mcp").toolset().names if name in bb.registry]
    if taken:
        raise UsageError(f"a tool cannot be called {taken[0]}: there is one of ours")
    bb.runs.look_again()  # something may wait for these tools
    service = Service(bb, session=session, budget_s=budget_s, only_as_tasks=only_as_tasks)
    with _logging_apart():
        try:
            yield service.server()
        finally:
            await service.close()


@contextmanager
def _logging_apart() -> "Generator[None]":
    """Where nobody has set up logging, Python prints errors, and what is printed while a tool runs

    goes to its own log, which its model may read. So they go to the stream that is there now.
    """
    ours = logging.getLogger("backburner")
    if ours.hasHandlers():
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    ours.addHandler(handler)
    try:
        yield
    finally:
        ours.removeHandler(handler)


async def serve(
    bb: "Backburner",
    session: str | None = None,
    registry: "Registry | None" = None,
    *,
    budget_s: float = DEFAULT_BUDGET_S,
    port: int | None = None,
    host: str = LOOPBACK,
    announce: Callable[[str], None] = _log.info,
    tokens: bool = False,
    only_as_tasks: Collection[str] = (),
) -> None:
    """Serve background work over MCP, and the tools of ``bb`` and of ``registry``.

    On standard input and output, until that ends; with ``port``, over HTTP on this machine, whose
    address ``announce`` is told; ``host`` is one that nobody else reaches, and with ``tokens`` only
    who shows a token of this home is let in. All clients share ``session``, or have one each, by
    their name and workspace folder. A call that takes longer than ``budget_s`` seconds goes on by
    itself. Tools that are named in ``only_as_tasks`` are refused to clients of 2026-07-28 that do
    not declare the extension.
    """
    from backburner.mcp import transports
    from backburner.runtime.tokens import TokenService

    async with opened(
        bb, session, registry, budget_s=budget_s, only_as_tasks=only_as_tasks
    ) as server:
        if port is None:
            await transports.over_stdio(server)
        else:
            await transports.over_http(
                server,
                transports.listen(port, host),
                announce,
                tokens=TokenService(bb.store, bb.home) if tokens else None,
            )
