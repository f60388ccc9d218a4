"""`backburner ask`."""

from typing import Annotated

import typer

from backburner.cli.inside_options import InsideHome, InsideSession
from backburner.cli.options import JsonOption, seconds
from backburner.cli.taking_part import Place, ask, read_schema

EXAMPLES = (
    'answer=$(backburner ask "Deploy to production?")',
    'backburner ask --timeout 5m "Which branch?" || echo main',
    'backburner ask --schema \'{"enum": ["yes", "no"]}\' "Go on?"',
)


def command(
    question: Annotated[str, typer.Argument(metavar="QUESTION", hidden=True)],
    *,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="TIME", help="Give up after this, with status 124."),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option("--schema", metavar="JSON", help="A JSON schema that the answer has to fit."),
    ] = None,
    as_json: JsonOption = False,
    home: InsideHome = None,
    session: InsideSession = None,
) -> int:
    """Inside a task: ask a question, and print the answer.

    The session is told of QUESTION; `backburner send ID ANSWER` answers it. Waits for as long as
    it takes, unless told; Ctrl-C withdraws the question. In a terminal, and not in a task, the
    answer is read there. With --schema an answer that does not fit is refused to whoever gives
    it, and the question stays open.
    """
    timeout_s = None if timeout is None else seconds(timeout, "--timeout")
    fitting = None if schema is None else read_schema(schema)
    return ask(Place(home, session, as_json), question, timeout_s, fitting)
