"""The last line that each task on the screen has written. Read when it changes, and not too often:

a screen full of jobs that flood must not cost more than one.
"""

import time
from collections.abc import Iterable

from backburner.app import Backburner
from backburner.app import Task as Handle
from backburner.cli.textwidth import clean
from backburner.cli.top.roster import is_active
from backburner.model.errors import BackburnerError
from backburner.model.task import Task
from backburner.work.log.fold import fold

_FLOOR_S = 0.5
"""Between two reads of one task."""
_BUDGET_S = 0.02
"""For all reads of one look; the rest comes with the next."""
_LOOKED_AT = 4000
_LINES = 3
_KEPT = 1000


class Tails:
    """Last lines, by task."""

    def __init__(self, backburner: Backburner) -> None:
        self._backburner = backburner
        self._texts: dict[str, str] = {}
        self._read_for: dict[str, tuple[int, bool]] = {}
        self._read_at: dict[str, float] = {}
        self._grown: set[str] = set()

    def of(self, task: Task) -> str:
        """The last line; empty where there is none."""
        return self._texts.get(task.id, "")

    @property
    def due(self) -> bool:
        """Whether something is waiting to be read."""
        return bool(self._grown)

    async def look(self, tasks: Iterable[Task], grown: set[str]) -> None:
        """Read what is new of these tasks, as far as the budget reaches."""
        self._grown |= grown
        began = time.monotonic()
        shown: set[str] = set()
        for task in tasks:
            shown.add(task.id)
            state = (task.attempt, is_active(task))
            fresh = self._read_for.get(task.id) != state
            if not fresh and task.id not in self._grown:
                continue
            now = time.monotonic()
            waited = now - self._read_at.get(task.id, 0.0) >= _FLOOR_S
            if (not fresh and not waited) or now - began > _BUDGET_S:
                self._grown.add(task.id)
                continue
            self._grown.discard(task.id)
            self._read_for[task.id] = state
            self._read_at[task.id] = now
            self._texts[task.id] = await self._read(task)
        self._grown &= shown
        if len(self._texts) > _KEPT:
            for known in (self._texts, self._read_for, self._read_at):
                for task_id in known.keys() - shown:
                    del known[task_id]

    async def _read(self, task: Task) -> str:
        if task.started_at is None:
            return ""
        try:
            chunk = await Handle(self._backburner, task).output(
                last_lines=_LINES, max_chars=_LOOKED_AT, raw=True
            )
        except (BackburnerError, OSError):
            return ""  # it was forgotten meanwhile
        for text in (chunk.text, chunk.stderr_text or ""):
            for line in reversed(fold(text, repeats=False).splitlines()):
                if shown := clean(line.expandtabs()).strip():
                    return shown
        return ""
