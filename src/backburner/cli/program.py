"""The program as typer sees it. Of the commands only the one that is asked for is loaded."""

import functools
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, cast

import typer

import backburner
from backburner.cli import exits
from backburner.model.errors import UsageError

COMMANDS = (
    "run", "ls", "top", "show", "logs", "wait", "stop", "send", "attach", "rerun",
    "signals", "channel", "session", "queue", "owner", "schedule", "prune", "doctor", "db",
    "completion",
    "service", "mcp", "serve", "token", "gateway", "worker",
    "status", "progress", "result", "artifact", "ask", "tell",
)  # fmt: skip


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
        if hasattr(module, "VERBS"):
            app.add_typer(_group(module), name=name)
        else:
            _add(app, name, module.command, module)
    return app


def _add(app: typer.Typer, name: str, command: Callable[..., int], module: ModuleType) -> None:
    examples: tuple[str, ...] = module.EXAMPLES
    if command is not getattr(module, "command", None):  # a verb: the examples that show it
        examples = tuple(line for line in examples if line.split()[2] == name)
    context = getattr(module, "CONTEXTS", {}).get(name) or getattr(module, "CONTEXT", {})
    app.command(name, epilog=_examples(examples), context_settings=context)(_later(command))


def _group(module: ModuleType) -> typer.Typer:
    """A command with verbs of its own: its module has VERBS, by name, in the place of `command`."""
    group = typer.Typer(
        help=module.HELP,
        epilog=_examples(module.EXAMPLES),
        no_args_is_help=False,
        rich_markup_mode=None,
        subcommand_metavar="VERB",
    )
    for verb, command in module.VERBS.items():
        _add(group, verb, command, module)
    return group


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
