"""The output of the task that is looked at, as lines: read from its end, then what is new.

A line that is not whole yet is kept apart, because what follows may draw over it.
"""

from dataclasses import dataclass, field

from backburner.app import Backburner
from backburner.app import Task as Handle
from backburner.cli.textwidth import clean
from backburner.model.task import Task
from backburner.model.values import value
from backburner.work.log.fold import fold

FIRST_LINES = 2000
_NEW_CHARS = 40_000
"""Of a flood, head and tail of what is new are shown, with a note of what is not."""
_LONGEST_LINE = 8192
_LONGEST_PENDING = 64 * 1024


@value
class Line:
    """One line as it is shown."""

    text: str
    error: bool = False
    """From standard error, where that is kept apart."""


@dataclass(slots=True)
class News:
    """What a read has brought."""

    lines: list[Line] = field(default_factory=list[Line])
    unfinished: Line | None = None
    """The line that is being written."""
    anew: bool = False
    """It belongs to another task or attempt than what was shown before."""


class Output:
    """Reads the output of one task after the other."""

    def __init__(self, backburner: Backburner) -> None:
        self._backburner = backburner
        self._reading: tuple[str, int] | None = None
        self._cursor: str | None = None
        self._pending = ""

    async def read(self, task: Task | None) -> News:
        """What is new of this task."""
        if task is None:
            self._reading = None
            return News(anew=True)
        reading = (task.id, task.attempt)
        anew = reading != self._reading
        handle = Handle(self._backburner, task)
        if anew:
            self._pending = ""
            chunk = await handle.output(last_lines=FIRST_LINES, max_chars=None, raw=True)
        else:
            chunk = await handle.output(since=self._cursor, max_chars=_NEW_CHARS, raw=True)
        self._reading, self._cursor = reading, chunk.cursor
        text = self._pending + chunk.text
        whole = len(text) if chunk.complete else text.rfind("\n") + 1
        if len(text) - whole > _LONGEST_PENDING:
            whole = len(text)
        settled, self._pending = text[:whole], text[whole:]
        lines = _lines(settled, error=False) + _lines(chunk.stderr_text or "", error=True)
        unfinished = _lines(self._pending, error=False)
        return News(lines, unfinished[-1] if unfinished else None, anew)


def _lines(text: str, *, error: bool) -> list[Line]:
    return [Line(_shown(line), error) for line in fold(text).splitlines()] if text else []


def _shown(line: str) -> str:
    return clean(line[:_LONGEST_LINE].expandtabs()).rstrip()
