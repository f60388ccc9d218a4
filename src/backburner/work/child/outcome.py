"""How a child ended, in its own words: a file that it puts in place before it leaves.

The exit code says that a process ended; this says what a function gave back or raised. It is put
in place by rename and never changed, so whoever comes after any crash of ours reads the same. The
child then leaves with the exit code that goes with it: where the process ended otherwise (it
crashed on its way out, or somebody killed it), that is how it ended.
"""

import json
import os
from dataclasses import replace
from typing import Any, cast

from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder
from backburner.model.limits import RESULT_MAX_BYTES
from backburner.model.states import ErrorKind, State
from backburner.model.task import preview
from backburner.model.values import value
from backburner.work.plain_file import open_plain
from backburner.work.result import no_number, problem_with

FAILED = 1
"""What a child leaves with when it failed, as Python itself does."""

UNSAID = 74
"""What it leaves with when there was no room to say how it ended (EX_IOERR)."""

MESSAGE_MAX_CHARS = 2000
_FILE_MAX_BYTES = 16 * RESULT_MAX_BYTES
"""A result and a raw output, of characters that take six bytes here and one where they were
measured.
"""


@value
class LeftOutcome:
    """What a child has left."""

    ending: Ending
    exit_code: int
    raw_output: Any = None

    def applied_to(self, ending: Ending) -> Ending:
        """How the task ended, whose process ended like this. The same when applied twice."""
        if ending.exit_code != self.exit_code:
            return ending if ending.result is not None else replace(ending, result=self._kept())
        return self.ending

    def _kept(self) -> Any:
        return self.ending.result if self.ending.state is State.SUCCEEDED else None


def leave(folder: AttemptFolder, ending: Ending, raw_output: Any = None) -> int:
    """Say how it ended. Answers the exit code to leave with; OSError where there is no room."""
    new = f"{folder.outcome}.new"
    with open(new, "w", encoding="utf-8", opener=_private) as file:
        json.dump({"ending": ending.document(), "raw_output": raw_output}, file)
    os.rename(new, folder.outcome)
    return exit_code_for(ending)


def exit_code_for(ending: Ending) -> int:
    """What a child leaves with that ended like this."""
    return 0 if ending.state is State.SUCCEEDED else FAILED


def read(folder: AttemptFolder) -> LeftOutcome | None:
    """What was left, if anything that can be understood was: the file is the job's."""
    try:
        with open(open_plain(folder.outcome, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            text = file.read(_FILE_MAX_BYTES)
        document = cast("dict[str, Any]", json.loads(text, parse_constant=no_number))
        ending = Ending.from_document(document["ending"])
        code = exit_code_for(ending)
        return LeftOutcome(_checked(ending), code, document.get("raw_output"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def is_there(folder: AttemptFolder) -> bool:
    """Whether anything was left, understood or not."""
    return os.path.lexists(folder.outcome)


def _checked(ending: Ending) -> Ending:
    """What can be in the record; ValueError for anything else."""
    said: list[Any] = [ending.summary, ending.error.message if ending.error else None]
    if not all(isinstance(text, str | None) for text in said) or problem_with(ending.result):
        raise ValueError("no texts, or no result")
    summary = short(ending.summary) if ending.summary else None
    if ending.state is State.SUCCEEDED and ending.error is None:
        return Ending.succeeded(exit_code=0, summary=summary, result=ending.result)
    kinds = (ErrorKind.ERROR, ErrorKind.SPAWN)
    if ending.state is not State.FAILED or ending.error is None or ending.error.kind not in kinds:
        raise ValueError("no ending that a child can have")
    failed = Ending.failed(ending.error.kind, short(ending.error.message), result=ending.result)
    return replace(failed, summary=summary)


def short(text: str) -> str:
    """One line of it, of a bearable length."""
    return preview(text[: 4 * MESSAGE_MAX_CHARS], MESSAGE_MAX_CHARS)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
