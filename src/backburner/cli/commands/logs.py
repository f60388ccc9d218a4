"""`backburner logs`."""

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, say, terminal
from backburner.cli.options import (
    HomeOption,
    JsonOption,
    SessionOption,
    TaskArgument,
    count,
    seconds,
)
from backburner.cli.place import act, place
from backburner.model.errors import UsageError

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Task
    from backburner.cli.following import Reading

EXAMPLES = (
    "backburner logs bg_7k2m",
    "backburner logs -f -n 20 bg_7k2m",
    "backburner logs --since 42m --grep 'ERROR|WARN' bg_7k2m",
    "backburner logs --since 1.48213 --json bg_7k2m   what came after that cursor",
    "backburner logs --stderr --raw bg_7k2m >errors.txt",
)


def command(
    id: TaskArgument,
    *,
    keep_on: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the task ends.")
    ] = False,
    lines: Annotated[
        str | None, typer.Option("--lines", "-n", metavar="N", help="Only the last N lines.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="CURSOR|TIME",
            help="What came after a cursor of --json (1.48213), or in the last 42m.",
        ),
    ] = None,
    grep: Annotated[
        str | None,
        typer.Option("--grep", metavar="RE", help="Only lines that match this RE2 pattern."),
    ] = None,
    stderr: Annotated[
        bool,
        typer.Option("--stderr", help="Only standard error, of a task that keeps it apart."),
    ] = False,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="As it was written: with colours, redrawn and repeated lines. Bytes that are no "
            "UTF-8 are shown as U+FFFD.",
        ),
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Print the output of a task, while it runs and after.

    ID is the id of a task, or enough of it. Of long output head and tail are kept, with a line
    that says what is missing in between. Standard error of a task that keeps it apart goes to
    standard error. Ctrl-C leaves the task alone.
    """
    last_lines = None if lines is None else count(lines, "--lines")
    found: list[Task] = []

    async def work(backburner: "Backburner", session: "Session") -> int:
        from backburner.cli.following import Reading

        task = await session.task(id)
        found.append(task)
        if stderr and not task.record.spec.get("separate_stderr"):
            raise UsageError(
                f"{task.id} keeps both streams in one log",
                remedy="leave --stderr out, or start the task with --separate-stderr",
            )
        reading = Reading(
            since=await _cursor(task, since),
            grep=grep,
            last_lines=last_lines,
            raw=raw,
            streams="err" if stderr else "both",
        )
        if keep_on:
            return await _follow(backburner, task, reading, as_json=as_json)
        return await _print(task, reading, as_json=as_json)

    try:
        return act(place(home, session), work)
    except KeyboardInterrupt:
        if keep_on and found:
            say.message(f"left alone: {found[0].id} goes on")
        raise


async def _cursor(task: "Task", text: str | None) -> str | None:
    """The cursor that --since means; None is the beginning."""
    from backburner.work.log.cursor import Cursor

    if text is None:
        return None
    try:
        return str(Cursor.parse(text))
    except ValueError:
        pass
    try:
        return await task.cursor_ago(seconds(text, "--since"))
    except UsageError:
        raise UsageError(
            f"--since: {text!r} is neither a cursor nor a time",
            remedy="write for example 42m, or a cursor that --json printed, such as 1.48213",
        ) from None


async def _print(task: "Task", reading: "Reading", *, as_json: bool) -> int:
    import sys

    from backburner.cli.output import chunk_document

    chunk = await reading.read(task, since=reading.since, first=True)
    if as_json:
        say.document(chunk_document(task, chunk))
        return exits.DONE
    if chunk.stderr_text and reading.streams == "both":
        say.error_output(chunk.stderr_text)
    text = chunk.stderr_text or "" if reading.streams == "err" else chunk.text
    say.at_once(text)
    if text and not text.endswith("\n") and terminal.is_terminal(sys.stdout):
        say.at_once("\n")
    if not chunk.total and not text:
        so_far = "" if chunk.complete else " so far"
        say.message(f"{task.id} has written nothing{so_far}")
    return exits.DONE


async def _follow(
    backburner: "Backburner", task: "Task", reading: "Reading", *, as_json: bool
) -> int:
    from dataclasses import replace

    from backburner.cli.following import Printer, follow
    from backburner.cli.output import chunk_document

    if as_json:
        async with contextlib.aclosing(follow(backburner, task, reading)) as pieces:
            async for chunk in pieces:
                if chunk.text or chunk.stderr_text or chunk.complete:
                    say.json_line(chunk_document(task, chunk))
        return exits.DONE
    # Folded here, because redrawn lines go across pieces; what matches a pattern is whole lines.
    fold_here = not reading.raw and reading.grep is None
    printer = Printer(exact=not fold_here)
    reading = replace(reading, raw=reading.raw or fold_here)
    async with contextlib.aclosing(follow(backburner, task, reading)) as pieces:
        async for chunk in pieces:
            if reading.streams == "err":
                printer.print(replace(chunk, text=chunk.stderr_text or "", stderr_text=None))
            else:
                printer.print(chunk)
    printer.close()
    return exits.DONE
