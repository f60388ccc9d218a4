"""The program as typer sees it. Of the commands only the one that is asked for is loaded."""

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, cast

import typer

import backburner
from backburner.cli import exits
from backburner.model.errors import UsageError

COMMANDS = ("run", "ls", "show", "logs", "wait", "stop", "rerun", "signals", "prune", "doctor")


def run_program(argv: list[str]) -> int:
    """Carry out a command line. Answers the exit status."""
    wanted = argv[0] if argv and argv[0] in COMMANDS else None
    try:
        answer = build(wanted)(args=argv, prog_name="backburner", standalone_mode=False)
    except typer.TyperException as error:
        name = f"backburner {wanted}" if wanted else "backburner"
        raise UsageError(
            _in_our_tone(error.format_message()), remedy=f"see: {name} --help"
        ) from None
    except SystemExit:
        raise BrokenPipeError from None  # how typer leaves when nobody reads the help
    if not callable(answer):
        return exits.DONE  # help or the version was printed
    return cast("Callable[[], int]", answer)()


def build(only: str | None = None) -> typer.Typer:
    """The typer application with one command, or with all for its help."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,  # the same plain text in a terminal and in a file
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True, epilog=_BELOW)(_program)
    for name in COMMANDS if only is None else (only,):
        module = import_module(f"backburner.cli.commands.{name}")
        app.command(
            name,
            epilog=_examples(module.EXAMPLES),
            context_settings=getattr(module, "CONTEXT", {}),
        )(_later(module.command))
    return app


def _later(command: Callable[..., int]) -> Callable[..., Callable[[], int]]:
    """The command, to be carried out when typer is done.

    Typer only reads the command line: it has ideas of its own about interrupts and broken pipes.
    """

    @functools.wraps(command)
    def read(**options: Any) -> Callable[[], int]:
        return functools.partial(command, **options)

    return read


def _program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Trustworthy background work: tasks that survive, can be watched, and report back once."""
    if version:
        print(f"backburner {backburner.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


_BELOW = """\b
Start a task, look at it, wait for it:
  id=$(backburner run -- 'pytest -q')
  backburner show $id
  backburner wait $id

`backburner COMMAND --help` explains a command.
"""


def _examples(lines: tuple[str, ...]) -> str:
    # \b: typer leaves the line breaks of this paragraph alone.
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def _in_our_tone(text: str) -> str:
    """Typer's messages are sentences; ours follow the name of the program."""
    text = " ".join(text.split()).rstrip(".")
    return text[:1].lower() + text[1:]
