"""`backburner mcp`."""

import json
import os
from collections.abc import Callable
from typing import Annotated

import typer

from backburner.cli import exits, options, say
from backburner.cli.options import HomeOption
from backburner.cli.place import place
from backburner.model.errors import UsageError

# What follows the first word belongs to the wrapped server, options included.
CONTEXT = {"allow_interspersed_args": False}

EXAMPLES = (
    "backburner mcp                                what a coding agent starts; it speaks on stdio",
    "backburner mcp --http 8765                    http://127.0.0.1:8765/mcp, for several clients",
    "backburner mcp --http 8765 --tokens           only for who shows a token",
    "backburner mcp --session work                 one session for all, in the place of their own",
    "backburner mcp --wrap -- npx some-mcp-server  its calls are parked after 30 s",
    "backburner mcp --http 8765 --wrap -- npx some-mcp-server",
    "backburner mcp --budget 10s --wrap -- https://mcp.example.com/mcp",
)


def command(
    words: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", hidden=True)] = None,
    *,
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve over HTTP on this machine, at /mcp; 0 takes any free port.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="With --http: an address of this machine alone."
        ),
    ] = "127.0.0.1",
    tokens: Annotated[
        bool,
        typer.Option(
            "--tokens", help="With --http: let in who shows a token of `backburner token create`."
        ),
    ] = False,
    wrap: Annotated[
        bool,
        typer.Option(
            "--wrap", help="Stand before another server: its command, or its address, after `--`."
        ),
    ] = False,
    budget: Annotated[
        str,
        typer.Option(
            "--budget", metavar="DURATION", help="A call that takes longer goes on by itself."
        ),
    ] = "30s",
    as_json: Annotated[
        bool, typer.Option("--json", help="With --http: print the address as JSON.")
    ] = False,
    home: HomeOption = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="NAME",
            help="The session of all clients. [BACKBURNER_SESSION; else one for each client and"
            " workspace folder]",
        ),
    ] = None,
) -> int:
    """Serve background work over MCP: to a coding agent, or before any other MCP server.

    A client that is started again in the same folder finds its tasks. Needs the extra `mcp`.
    """
    seconds = options.seconds(budget, "--budget")
    if wrap != bool(words):
        raise UsageError(
            "--wrap needs the command or the address of a server"
            if wrap
            else "a command is for --wrap only",
            remedy="write for example: backburner mcp --wrap -- npx some-mcp-server",
        )
    if as_json and http is None:
        raise UsageError("--json goes with --http", remedy="on stdio everything is JSON")
    if tokens and http is None:
        raise UsageError("--tokens goes with --http", remedy="on stdio there is one client: yours")
    at = place(home, session)
    named = session or os.environ.get("BACKBURNER_SESSION") or None
    _check_installed()
    announce = _print_address if as_json else _tell_address
    if words:
        from backburner.mcp import wrap as wrapping

        return wrapping.run(
            words,
            home=at.home.where,
            session=named,
            budget_s=seconds,
            port=http,
            host=host,
            tokens=tokens,
            announce=announce,
        )
    import asyncio

    serving = _serve(
        at.home.where,
        named,
        seconds,
        port=http,
        host=host,
        tokens=tokens,
        announce=announce,
    )
    asyncio.run(serving)
    return exits.DONE


async def _serve(
    home: str,
    session: str | None,
    budget_s: float,
    *,
    port: int | None,
    host: str,
    tokens: bool,
    announce: Callable[[str], None],
) -> None:
    from backburner.app import Backburner
    from backburner.mcp import serve

    async with Backburner.open(home) as backburner:
        await serve(
            backburner,
            session,
            budget_s=budget_s,
            port=port,
            host=host,
            tokens=tokens,
            announce=announce,
        )


def _tell_address(address: str) -> None:
    say.message(f"serving MCP at {address}")


def _print_address(address: str) -> None:
    print(json.dumps({"url": address}), flush=True)


def _check_installed() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise UsageError("the extra `mcp` is not installed", remedy='pip install "backburner[mcp]"')
