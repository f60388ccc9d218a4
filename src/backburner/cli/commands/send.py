"""`backburner send`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, say
from backburner.cli.options import HomeOption, JsonOption, SessionOption, TaskArgument
from backburner.cli.place import act, place
from backburner.model.errors import UsageError
from backburner.model.limits import ANSWER_MAX_BYTES

if TYPE_CHECKING:
    from backburner.app import Backburner, Session
    from backburner.model.task import Task

EXAMPLES = (
    "backburner send bg_7k2m yes",
    "backburner send --question 5f1c bg_7k2m main",
    "backburner send bg_7k2m - <notes.txt",
    "backburner send --eof bg_7k2m",
)


def command(
    id: TaskArgument,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", hidden=True)] = None,
    *,
    question: Annotated[
        str | None,
        typer.Option("--question", metavar="QID", help="Answer this question. [the oldest]"),
    ] = None,
    eof: Annotated[
        bool, typer.Option("--eof", help="Say that its standard input has come to its end.")
    ] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Add no line break to what standard input gets.")
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Answer the question of a task, or send it input.

    ID is the id of a task, or enough of it. TEXT answers its oldest open question; where it has
    asked nothing and was started with --stdin or --pty, its input gets TEXT as a line; a Python
    task, a tool or an agent gets it as a message. - reads TEXT from standard input, up to 1 MiB.
    `show` has the questions with their ids. Whether another session may stop the task is asked
    too: --question with yes or no answers that.
    """
    if eof == (text is not None):
        raise UsageError("give a text, or --eof", remedy="see: backburner send --help")
    if eof and (question is not None or raw):
        raise UsageError("--eof goes alone", remedy="send the text first, then --eof")
    given = _standard_input() if text == "-" else text

    async def work(_: "Backburner", session: "Session") -> int:
        task = await session.task(id)
        if given is None:
            await task.send_eof()
            answered = None
        else:
            answered = await task.send(given, question=question, raw=raw)
        if as_json:
            sent = "eof" if given is None else _what_was_sent(task.record, answered)
            say.document({"task": task.id, "sent": sent, "question": answered})
        elif answered is not None:
            say.message(f"answered question {answered} of {task.record.title} ({task.id})")
        return exits.DONE

    return act(place(home, session), work)


def _what_was_sent(task: "Task", answered: str | None) -> str:
    from backburner.runtime.sending import takes_messages

    if answered is not None:
        return "answer"
    return "message" if takes_messages(task) else "input"


def _standard_input() -> str:
    data = sys.stdin.buffer.read(ANSWER_MAX_BYTES + 1)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        if len(data) > ANSWER_MAX_BYTES:
            return " " * len(data)  # refused for its length: it may be cut inside a character
        raise UsageError("what is sent is no UTF-8", remedy="send texts only") from None
