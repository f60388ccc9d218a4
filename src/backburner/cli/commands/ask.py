"""`backburner ask`."""

from typing import Annotated

import typer

from backburner.cli.inside_options import InsideHome, InsideSession
from backburner.cli.options import JsonOption, seconds
from backburner.cli.taking_part import Place, ask

EXAMPLES = (
    'answer=$(backburner ask "Deploy to production?")',
    'backburner ask --timeout 5m "Which branch?" || echo main',
)


def command(
    question: Annotated[str, typer.Argument(metavar="QUESTION", hidden=True)],
    *,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="TIME", help="Give up after this, with status 124."),
    ] = None,
    as_json: JsonOption = False,
    home: InsideHome = None,
    session: InsideSession = None,
) -> int:
    """Inside a task: ask a question, and print the answer.

    The session is told of QUESTION; `backburner send ID ANSWER` answers it. Waits for as long as
    it takes, unless told; Ctrl-C withdraws the question. In a terminal, and not in a task, the
    answer is read there.
    """
    timeout_s = None if timeout is None else seconds(timeout, "--timeout")
    return ask(Place(home, session, as_json), question, timeout_s)
