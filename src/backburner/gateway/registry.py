"""The commands of a chat, for every platform: their names, what they do, and their menu. Pure."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from backburner.gateway.platform import MenuEntry
from backburner.model.values import value

if TYPE_CHECKING:
    from backburner.gateway.desk import Request

Action = Callable[["Request"], Awaitable[None]]


@value
class Command:
    """One of them."""

    name: str
    summary: str
    category: str
    action: Action
    takes: str = ""
    """What is written after it, such as ``ID``."""
    aliases: tuple[str, ...] = ()
    slow: bool = False
    """Others need not wait for it."""
    needs: bool = False
    """Nothing can be done without what it takes."""
    takes_task: bool = False
    """The first thing it takes is the id of a task."""

    @property
    def usage(self) -> str:
        """How it is written."""
        names = " or ".join(f"/{name}" for name in (self.name, *self.aliases))
        return f"Usage: {f'{names} {self.shown}'.strip()}\n{self.summary}"

    @property
    def shown(self) -> str:
        """What it takes, in brackets where it can be left out."""
        return self.takes if self.needs or not self.takes else f"[{self.takes}]"


class Commands:
    """All of them."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._commands = list(commands)
        self._by_name = {
            name: each for each in self._commands for name in (each.name, *each.aliases)
        }

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands)

    def find(self, name: str) -> Command | None:
        """By its name, or another one, in any case."""
        return self._by_name.get(name.lower())

    def menu(self) -> Sequence[MenuEntry]:
        """For the menu of a platform; other names of a command are entries of their own."""
        return [
            MenuEntry(name, each.summary, each.shown)
            for each in self._commands
            for name in (each.name, *each.aliases)
        ]

    def completions(self, text: str) -> list[tuple[str, str]]:
        """Names and summaries that a beginning such as ``/ba`` may become; none without the /."""
        if not text.startswith("/"):
            return []
        return [
            (f"/{name}", each.summary)
            for name, each in self._by_name.items()
            if name.startswith(text[1:].lower())
        ]

    def help(self) -> str:
        """What there is, by category."""
        lines: list[str] = []
        for category in dict.fromkeys(each.category for each in self._commands):
            lines.append(category)
            for each in self._commands:
                if each.category == category:
                    names = ", ".join(f"/{name}" for name in (each.name, *each.aliases))
                    lines.append(f"  {f'{names} {each.shown}'.strip()}: {each.summary}")
        return "\n".join(lines)


def parse(text: str) -> tuple[str, str] | None:
    """The name of a command and what follows it; None where the text is no command."""
    stripped = text.strip()
    if not stripped.startswith("/"):
        return None
    words = stripped[1:].split(maxsplit=1)
    if not words or stripped[1].isspace() or "/" in words[0]:  # a path is no command
        return None
    return words[0], words[1].strip() if len(words) > 1 else ""
