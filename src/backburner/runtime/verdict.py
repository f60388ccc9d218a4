"""How tasks end that are more than a command: by what a function gave back or an agent answered.

An exit code alone decides for a shell command. For the others somebody has to look at what they
left, once, before the ending is settled.
"""

import asyncio
from dataclasses import replace
from typing import Any

from backburner.model.ending import Ending, TaskError
from backburner.model.home import AttemptFolder
from backburner.model.limits import RESULT_MAX_BYTES
from backburner.model.redaction import redact_text
from backburner.model.states import ErrorKind, Kind, State
from backburner.model.task import Task, preview
from backburner.runtime.attendant import Attendant
from backburner.work.child import outcome
from backburner.work.log.read import read_output
from backburner.work.shell import log_bounds

_LAST_WORDS_MAX_CHARS = 200


def verdicts(task: Task, folder: AttemptFolder) -> tuple[Attendant, ...]:
    """Who decides about this task, beside its exit code."""
    match task.kind:
        case Kind.SHELL:
            return ()
        case Kind.PYTHON | Kind.TOOL:
            return (ByOutcome(folder),)
        case Kind.AGENT:
            return (ByAnswer(task, folder),)


def beside(task: Task, folder: AttemptFolder) -> dict[str, Any]:
    """What `result.json` says beside the ending: the raw output of a tool (E1)."""
    left = outcome.read(folder) if task.kind is Kind.TOOL else None
    return {} if left is None or left.raw_output is None else {"raw_output": left.raw_output}


class ByOutcome:
    """The attendant of a child, which says itself how its call ended."""

    def __init__(self, folder: AttemptFolder) -> None:
        self._folder = folder

    def look(self) -> None:
        """Nothing to see before the end."""

    async def attend(self) -> None:
        """Nothing to do before the end."""

    async def conclude(self, ending: Ending) -> Ending:
        """As the child says, where the process then ended as it announced."""
        left = outcome.read(self._folder)
        if left is not None:
            return left.applied_to(ending)
        if ending.exit_code == 0 and outcome.is_there(self._folder):
            reason = "what it left of its result cannot be understood"
            return Ending.failed(ErrorKind.ERROR, reason)
        return ending


class ByAnswer:
    """The attendant of a command-line agent, whose answer is what it has written."""

    def __init__(self, task: Task, folder: AttemptFolder) -> None:
        self._task = task
        self._folder = folder

    def look(self) -> None:
        """Nothing to see before the end."""

    async def attend(self) -> None:
        """Nothing to do before the end."""

    async def conclude(self, ending: Ending) -> Ending:
        """With its answer, or with the last that it said of its failure."""
        if ending.state is State.SUCCEEDED and ending.result is None:
            return replace(ending, result=await asyncio.to_thread(self._answer))
        error = ending.error
        if error is None or error.kind is not ErrorKind.EXIT:
            return ending
        words = await asyncio.to_thread(self._last_words)
        if not words or error.message.endswith(words):
            return ending
        return replace(ending, error=TaskError(error.kind, f"{error.message}: {words}"))

    def _answer(self) -> str:
        text = self._read(self._folder.log, RESULT_MAX_BYTES)
        if len(text.encode(errors="replace")) > RESULT_MAX_BYTES:
            text = self._read(self._folder.log, RESULT_MAX_BYTES // 4)  # no character is longer
        return text.rstrip()

    def _last_words(self) -> str:
        lines = self._read(self._folder.stderr, _LAST_WORDS_MAX_CHARS * 8, last_lines=10)
        said = [line for line in lines.splitlines() if line.strip()]
        return preview(redact_text(said[-1]), _LAST_WORDS_MAX_CHARS) if said else ""

    def _read(self, path: str, max_chars: int, last_lines: int | None = None) -> str:
        return read_output(
            path,
            max_chars=max_chars,
            last_lines=last_lines,
            raw=last_lines is None,
            finished=True,
            bounds=log_bounds(self._task.spec),
        ).text
