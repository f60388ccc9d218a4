"""`backburner run`."""

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, options, order_options, phrases, ready_options, say, terminal
from backburner.cli.options import HomeOption, JsonOption, SessionOption, variables
from backburner.cli.order_options import (
    AfterFailureOption,
    AfterOption,
    CpuTimeOption,
    MemoryOption,
    NiceOption,
    PriorityOption,
    QueueOption,
    RetriesOption,
)
from backburner.cli.place import act, place
from backburner.cli.ready_options import (
    MatchOption,
    ReadyFileOption,
    ReadyHttpOption,
    ReadyOutputOption,
    ReadyPortOption,
    SilenceOption,
)
from backburner.model import clock
from backburner.model.errors import UsageError
from backburner.model.input import WindowSize

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Task

# What follows the first word belongs to the command, options included.
CONTEXT = {"allow_interspersed_args": False}

EXAMPLES = (
    "backburner run -- 'make && make test'           one argument: a line for the shell",
    "backburner run -- rsync -a photos/ nas:photos/  several: the words of a command",
    "backburner run --title nightly --max-runtime 6h --cwd /srv --env CI=1 -- ./build.sh",
    "backburner run --id deploy-42 -- ./deploy.sh    the same id again starts nothing new",
    "backburner run --stdin -- python3 -i              then: backburner send ID 'print(6 * 7)'",
    "backburner run --pty --size 120x40 -- htop        then: backburner attach ID",
    "backburner run --ready-port 8080 -- ./serve        then: backburner wait --for ready ID",
    "backburner run --ready-output 'listening on' --match 'ERROR|WARN' --silence 10m -- ./serve",
    "backburner run --notify -- make                 a notification on this screen at its end",
    "backburner run --after bg_7k2m --retries 3 -- ./upload.sh",
    "backburner run --queue build --nice 10 --memory 2G --cpu-time 30m -- make",
    "backburner run --wait --separate-stderr -- ./report.sh >report.txt",
)


def command(
    words: Annotated[list[str], typer.Argument(metavar="COMMAND", hidden=True)],
    *,
    title: Annotated[
        str | None,
        typer.Option("--title", metavar="TEXT", help="What to call it. [the command itself]"),
    ] = None,
    max_runtime: Annotated[
        str,
        typer.Option(
            "--max-runtime",
            metavar="TIME",
            help="End it after this long: 90s, 15m, 1h30m, 2d; 0 or none for no limit. [1h]",
            show_default=False,
        ),
    ] = "1h",
    cwd: Annotated[
        str | None,
        typer.Option("--cwd", metavar="DIR", help="The folder to run in. [this one]"),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME=VALUE", help="Set a variable beside those of here; repeatable."
        ),
    ] = None,
    separate_stderr: Annotated[
        bool, typer.Option("--separate-stderr", help="Keep standard error in a log of its own.")
    ] = False,
    stdin: Annotated[
        bool,
        typer.Option("--stdin", help="Let `backburner send` give it input, until `send --eof`."),
    ] = False,
    pty: Annotated[
        bool,
        typer.Option("--pty", help="Run it in a terminal of its own, for `backburner attach`."),
    ] = False,
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="COLUMNSxROWS",
            help="Of that terminal. [as this one; else 80x24]",
        ),
    ] = None,
    ready_output: ReadyOutputOption = None,
    ready_port: ReadyPortOption = None,
    ready_file: ReadyFileOption = None,
    ready_http: ReadyHttpOption = None,
    match: MatchOption = None,
    silence: SilenceOption = None,
    after: AfterOption = None,
    after_failure: AfterFailureOption = False,
    retries: RetriesOption = "0",
    priority: PriorityOption = "0",
    queue: QueueOption = None,
    nice: NiceOption = None,
    memory: MemoryOption = None,
    cpu_time: CpuTimeOption = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="An id of your own; started before: that task is printed."
        ),
    ] = None,
    notify: Annotated[
        bool,
        typer.Option("--notify", help="Show a notification on this screen when it ends or asks."),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Print its output until it ends, and exit with its code (6: stopped)."
        ),
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Start a command in the background, and print its id.

    The task is on disk when the id appears, and survives whatever dies after that. It runs in
    this folder, with these variables. Ctrl-C during --wait leaves it alone.
    """
    limit = options.max_runtime(max_runtime)
    variables_given = variables(env or [])
    port_given, silence_given = ready_options.port(ready_port), ready_options.silence(silence)
    window = None if size is None else WindowSize.parse(size)
    ordered = order_options.read(
        after,
        retries,
        nice,
        memory,
        cpu_time,
        after_failure=after_failure,
        queue=queue,
        priority=priority,
    )
    started: list[Task] = []

    async def work(backburner: "Backburner", session: "Session") -> int:
        try:
            task = await session.run(
                words[0] if len(words) == 1 else words,
                title=title,
                max_runtime=limit,
                cwd=cwd,
                env=variables_given,
                separate_stderr=separate_stderr,
                stdin=stdin,
                pty=pty,
                size=None if window is None else (window.columns, window.rows),
                ready_output=ready_output,
                ready_port=port_given,
                ready_file=ready_file,
                ready_http=ready_http,
                match=match,
                silence=silence_given,
                **ordered,
                notify=notify,
                id=id,
            )
        except FileNotFoundError:  # from getcwd
            raise UsageError(
                "the current folder does not exist any more", remedy="change to one that does"
            ) from None
        started.append(task)
        return await (_follow(backburner, task, as_json) if wait else _print_start(task, as_json))

    try:
        return act(place(home, session), work)
    except KeyboardInterrupt:
        if started:
            say.message(f"left alone: {started[0].id} goes on")
            say.hint(f"backburner logs -f {started[0].id} follows it, backburner stop ends it")
        raise


async def _print_start(task: "Task", as_json: bool) -> int:
    return print_start(task, as_json=as_json)


def print_start(task: "Task", *, as_json: bool) -> int:
    """The id of a new task; 1 where it could not start."""
    if as_json:
        say.document(task.document())
    else:
        say.data(task.id)
    if task.error is not None and task.record.started_at is None:
        say.message(phrases.ending(task.record))
        return exits.FAILED
    return exits.DONE


async def _follow(backburner: "Backburner", task: "Task", as_json: bool) -> int:
    """Print what it writes as it is, up to its end."""
    from backburner.cli.following import Printer, Reading, follow
    from backburner.cli.output import chunk_document

    if as_json:
        say.json_line(task.document())
    elif terminal.is_terminal(sys.stderr):
        say.message(f"{task.id} started")
    printer = Printer(exact=True)
    async with contextlib.aclosing(follow(backburner, task, Reading(raw=True))) as pieces:
        async for chunk in pieces:
            if not as_json:
                printer.print(chunk)
            elif chunk.text or chunk.stderr_text:
                say.json_line(chunk_document(task, chunk))
    if as_json:
        say.json_line(task.document())
    status = exits.status_of(task.record)
    if status != exits.DONE:
        say.message(phrases.sentence(task.record, clock.now()))
    return status
