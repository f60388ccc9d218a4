"""What there is to complete: commands, verbs, options and arguments, read from the program itself.

So nothing is listed twice, and a new option is completed as soon as it exists.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import Any

import typer

from backburner.cli.program import build
from backburner.model.states import State
from backburner.model.values import value

_ENDS_ONLY_ACTIVE = ("stop", "wait", "send", "attach")
"""Commands that are for tasks which have not ended."""
_OPTIONS = {"--session": "sessions", "--queue": "queues", "--state": f"words:{' '.join(State)}"}
_VALUES = {"DIR": "folder", "PATH": "file", "FILE": "file", "P": "file", "ID": "tasks"}
_GROUPS = {"queue": "queues", "channel": "channels"}
"""Groups whose verbs take a name of what they manage."""
_ARGUMENTS = {"PATH": "file", "COMMAND": "command", "SHELL": "words:bash zsh fish"}

Kind = str
"""What a place takes: tasks, active, sessions, queues, channels, schedules, folder, file, command,
`words:` with the words, `free` for what nobody can guess, or nothing at all."""


@value
class Option:
    """One option."""

    names: tuple[str, ...]
    meaning: str
    takes: Kind
    """Empty for a flag."""


@value
class Command:
    """A command, or a verb of one."""

    name: str
    meaning: str
    options: tuple[Option, ...] = ()
    argument: Kind = ""
    several: bool = False
    """Whether the argument can be given again and again."""
    verbs: tuple["Command", ...] = field(default=())

    def walk(self) -> Iterator[tuple[str, "Command"]]:
        """Itself and its verbs, with their names in full: `queue`, `queue set`."""
        yield self.name, self
        for verb in self.verbs:
            yield f"{self.name} {verb.name}", verb


def commands() -> list[Command]:
    """All of them, as in the help."""
    root: Any = typer.main.get_command(build())
    return [_command(name, found, name) for name, found in root.commands.items()]


def _command(name: str, found: Any, group: str) -> Command:
    arguments = [each for each in found.params if each.param_type_name == "argument"]
    first = arguments[0] if arguments else None
    return Command(
        name=name,
        meaning=first_sentence(found.help or ""),
        options=tuple(
            Option(
                (*each.opts, *each.secondary_opts), first_sentence(each.help or ""), _value(each)
            )
            for each in found.params
            if each.param_type_name == "option" and not each.hidden
        ),
        argument=_argument(first, name, group) if first is not None else "",
        several=first is not None and first.nargs == -1,
        verbs=tuple(
            _command(verb, each, name) for verb, each in getattr(found, "commands", {}).items()
        ),
    )


def _value(option: Any) -> Kind:
    if option.is_flag:
        return ""
    for name in option.opts:
        if name in _OPTIONS:
            return _OPTIONS[name]
    metavar = option.metavar or ""
    if "|" in metavar and metavar.islower():
        return f"words:{metavar.replace('|', ' ')}"
    return _VALUES.get(metavar, "free")


def _argument(argument: Any, command: str, group: str) -> Kind:
    metavar = (argument.metavar or "").strip("[].…")
    if metavar == "ID" and group == "schedule":
        return "schedules"
    if metavar == "ID":
        return "active" if command in _ENDS_ONLY_ACTIVE else "tasks"
    if metavar == "NAME":
        return _GROUPS.get(group, "free")
    return _ARGUMENTS.get(metavar, "free")


def first_sentence(text: str) -> str:
    """For a list: one line, no full stop."""
    line = " ".join(text.split())
    sentence, stop, _ = line.partition(". ")
    return sentence if stop else line.rstrip(".")


def quoted(text: str) -> str:
    """For any of the three shells. They differ in how a quote is quoted; a text does without."""
    return "'" + text.replace("'", "’") + "'"


def placed(place: list[str]) -> str:
    """Where to look, as words for any of the three shells."""
    return " ".join(map(_exactly, place))


def _exactly(word: str) -> str:
    # 'it'"'"'s' means the same to bash, zsh and fish; a backslash within quotes does not.
    pieces = word.replace("'", "'\"'\"'")
    return "'" + pieces.replace("\\", "'\\\\'") + "'"
