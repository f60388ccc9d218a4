"""`backburner completion`."""

from importlib import import_module
from typing import Annotated

import typer

from backburner.cli import exits, say
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.model.errors import UsageError

EXAMPLES = (
    'eval "$(backburner completion bash)"',
    "backburner completion bash > ~/.local/share/bash-completion/completions/backburner",
    "backburner completion zsh > ~/.zfunc/_backburner",
    "backburner completion fish > ~/.config/fish/completions/backburner.fish",
)

_SHELLS = ("bash", "zsh", "fish")


def command(
    shell: Annotated[str, typer.Argument(metavar="SHELL", hidden=True)],
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Print the completion script for a shell.

    SHELL is bash, zsh or fish. Commands, options, ids, sessions and queues are completed; the
    start of an id completes to the id, and so does a piece of a title in bash and zsh. --home and
    --session are where ids are looked for when the line that is typed does not say. With --json,
    print what there is to complete.
    """
    if shell not in _SHELLS:
        raise UsageError(
            f"there is no completion for {shell!r}", remedy=f"use one of {', '.join(_SHELLS)}"
        )
    from backburner.cli.completion_tree import commands

    tree = commands()
    if as_json:
        from dataclasses import asdict

        say.document([asdict(each) for each in tree])
    else:
        place = [
            word
            for name, value in (("--home", home), ("--session", session))
            if value is not None
            for word in (name, value)
        ]
        say.at_once(import_module(f"backburner.cli.completion_{shell}").script(tree, place))
    return exits.DONE
