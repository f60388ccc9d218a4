"""`backburner serve`."""

import logging
import sys
from typing import Annotated

import typer

from backburner.cli import exits, say
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import place
from backburner.model.errors import UsageError

EXAMPLES = (
    "backburner serve                         http://127.0.0.1:8642, and a link that logs in",
    "backburner serve --port 0 --json         any free port; the address as JSON",
    "backburner serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --allow-host box.lan",
)


def command(
    *,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Listen on this address.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", metavar="N", min=0, max=65535, help="0 takes any free port."),
    ] = 8642,
    tls_cert: Annotated[
        str | None,
        typer.Option("--tls-cert", metavar="FILE", help="The certificate chain, as PEM."),
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="Its private key, as PEM.")
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy before it does TLS; any address may be used."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A name that browsers reach it by; again for several. Addresses and localhost are"
            " always taken.",
        ),
    ] = None,
    log_level: Annotated[
        str | None,
        typer.Option(
            "--log-level",
            metavar="LEVEL",
            help="debug, info, warning or error. [warning on a terminal, else info]",
        ),
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Serve the HTTP API and the dashboard, until Ctrl-C.

    Callers show a token: yours is in the file `token` of the home, and `backburner token create`
    makes others. Needs the extra `serve`.
    """
    at = place(home, session)
    level = _level(log_level)
    _check_installed()
    import asyncio

    from backburner.serve.logs import logging_as_json
    from backburner.serve.settings import Binding

    binding = Binding(host, port, tls_cert, tls_key, behind_proxy, tuple(allow_host or ()))

    def announce(address: str, link: str) -> None:
        if as_json:
            say.json_line({"url": address, "login": link, "token_file": at.home.token})
            return
        say.message(f"serving at {address}")
        say.message(f"open this to log in, once: {link}")

    async def main() -> None:
        from backburner.app import Backburner
        from backburner.serve.server import serve
        from backburner.work.tools.defaults import default_registry

        backburner = Backburner.open(at.home.where)
        for tool in default_registry():
            backburner.registry.register(tool)
        async with backburner:
            await serve(backburner, binding, announce=announce)

    with logging_as_json(level):
        asyncio.run(main())
    return exits.DONE


def _level(given: str | None) -> int:
    if given is None:
        return logging.WARNING if sys.stderr.isatty() else logging.INFO
    levels = {"debug": 10, "info": 20, "warning": 30, "error": 40}
    if given not in levels:
        raise UsageError(f"--log-level: {given!r} is none", remedy=f"use {', '.join(levels)}")
    return levels[given]


def _check_installed() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("fastapi", "uvicorn", "structlog")):
        raise UsageError(
            "the extra `serve` is not installed", remedy='pip install "backburner[serve]"'
        )
