"""The options of `run` that say when a task is ready, and what else its session is told of."""

from typing import Annotated

import typer

from backburner.cli.options import seconds
from backburner.model.errors import UsageError

ReadyOutputOption = Annotated[
    str | None,
    typer.Option(
        "--ready-output",
        metavar="RE",
        help="It is ready when a line of its output matches this RE2 pattern.",
    ),
]
ReadyPortOption = Annotated[
    str | None,
    typer.Option("--ready-port", metavar="N", help="It is ready when it listens on this TCP port."),
]
ReadyFileOption = Annotated[
    str | None,
    typer.Option("--ready-file", metavar="PATH", help="It is ready when it has written this file."),
]
ReadyHttpOption = Annotated[
    str | None,
    typer.Option(
        "--ready-http",
        metavar="URL",
        help="It is ready when this address answers with a status of 2xx or 3xx.",
    ),
]
MatchOption = Annotated[
    str | None,
    typer.Option(
        "--match",
        metavar="RE",
        help="Tell the session of lines that match, at most every 10 s; of a flood, no more.",
    ),
]
SilenceOption = Annotated[
    str | None,
    typer.Option(
        "--silence", metavar="TIME", help="Tell the session when it prints nothing for so long."
    ),
]


def port(text: str | None) -> int | None:
    """The number that --ready-port was given."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            f"--ready-port: {text!r} is no number", remedy="write for example --ready-port 8080"
        )
    return int(text[:10])


def silence(text: str | None) -> float | None:
    """The time that --silence was given."""
    return None if text is None else seconds(text, "--silence")
