"""What a job says of itself: lines of JSON that it appends to one file of its folder.

A line has one of the keys below, and every line is judged by itself: a job is a stranger, so what
is wrong about one gives a sentence for the person who wrote it, and the others count.
docs/taking-part.md explains the format to them.
"""

import json
import math
from collections.abc import Callable
from typing import Any, TypeGuard, cast

from backburner.model.limits import (
    PREVIEW_MAX_CHARS,
    QUESTION_MAX_CHARS,
    RESULT_MAX_BYTES,
    STATUS_MAX_CHARS,
)
from backburner.model.task import Progress, preview
from backburner.model.values import value
from backburner.work.result import NESTING_MAX, is_too_deep, no_number

LINE_MAX_BYTES = RESULT_MAX_BYTES + 64 * 1024
"""A result, escaped a little, and its key."""

_NUMBER_MAX = 1e15
"""Up to here a float counts every unit."""

_UNIT_MAX_CHARS = 30
_LABEL_MAX_CHARS = 200
_NAME_MAX_BYTES = 255
QUESTION_ID_MAX_CHARS = 64


@value
class Status:
    """What it is doing."""

    text: str


@value
class Advance:
    """How far it is."""

    progress: Progress


@value
class Outcome:
    """Its result; a later one takes the place."""

    value: Any
    size: int


@value
class Addition:
    """It has put a file of this name into its `artifacts`."""

    name: str


@value
class Ask:
    """It waits for the answer to a question."""

    id: str
    text: str
    schema: dict[str, Any] | None = None


@value
class Telling:
    """It tells its session something."""

    text: str


@value
class Withdrawal:
    """It does not wait any more."""

    id: str


@value
class Mistake:
    """A line that says nothing that could be understood, and why."""

    kind: str
    """The same for mistakes of the same sort, of which one is worth telling."""
    text: str


Item = Status | Advance | Outcome | Addition | Ask | Withdrawal | Telling | Mistake

LATEST_COUNTS = (Status, Advance, Outcome)
"""Of these an earlier one says nothing beside a later one."""


def parse(line: bytes) -> Item:
    """What one line says."""
    try:
        document = json.loads(line.decode("utf-8"), parse_constant=no_number)
    except (ValueError, RecursionError):
        return _mistake("json", f"a line is no JSON (append whole lines, with >>): {shown(line)}")
    if not isinstance(document, dict) or len(cast("dict[str, Any]", document)) != 1:
        return _mistake("object", f"a line is no object with one key: {shown(line)}")
    ((key, value),) = cast("dict[str, Any]", document).items()
    read = _READERS.get(key)
    if read is None:
        known = ", ".join(_READERS)
        return _mistake("key", f"a line says {shown(key)}, and not one of {known}")
    return read(value)


def shown(text: bytes | str) -> str:
    """A little of what a job wrote, for a sentence about it."""
    part = text[:400]
    plain = part.decode("utf-8", errors="replace") if isinstance(part, bytes) else part
    return repr(preview(_printable(plain), PREVIEW_MAX_CHARS))


def _mistake(kind: str, text: str) -> Mistake:
    return Mistake(kind, f"report: {text}")


def _printable(text: str, *, lines: bool = False) -> str:
    """Without what a terminal would obey, and without halves of characters."""
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(
        character if character.isprintable() or character in kept else " " for character in text
    )


def _status(value: Any) -> Item:
    if not isinstance(value, str):
        return _mistake("status", "a status is a text")
    return Status(preview(_printable(value[: 8 * STATUS_MAX_CHARS]), STATUS_MAX_CHARS))


def _progress(value: Any) -> Item:
    if not isinstance(value, dict):
        return _mistake("progress", 'progress is an object: {"current": 3, "total": 10}')
    given = cast("dict[str, Any]", value)
    unknown = given.keys() - {"current", "total", "unit", "label"}
    current, total = given.get("current"), given.get("total")
    unit, label = given.get("unit"), given.get("label")
    if unknown:
        return _mistake("progress", f"progress has no {shown(min(unknown))}")
    if not _is_amount(current):
        return _mistake("progress", "current is no number of 0 or more")
    if total is not None and not (_is_amount(total) and total > 0):
        return _mistake("progress", "total is no number above 0")
    if not isinstance(unit, str | None) or not isinstance(label, str | None):
        return _mistake("progress", "unit and label are texts")
    return Advance(
        Progress(current, total, _short(unit, _UNIT_MAX_CHARS), _short(label, _LABEL_MAX_CHARS))
    )


def _is_amount(value: Any) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= _NUMBER_MAX and math.isfinite(value)


def _short(text: str | None, limit: int) -> str | None:
    return preview(_printable(text[: 8 * limit]), limit) or None if text else None


def _result(value: Any) -> Item:
    try:
        size = len(json.dumps(value, allow_nan=False, separators=(",", ":")))
    except (ValueError, RecursionError):  # 1e999 is read as infinity
        return _mistake("result", "the result has a number that JSON does not have")
    if size > RESULT_MAX_BYTES:
        return _mistake(
            "result size",
            f"the result is longer than {RESULT_MAX_BYTES // 1024} KiB and was not kept: "
            "put it into a file and add that as an artifact",
        )
    if is_too_deep(value):
        return _mistake("result depth", f"the result is nested deeper than {NESTING_MAX} levels")
    return Outcome(value, size)


def _artifact(value: Any) -> Item:
    if not isinstance(value, str) or not is_name(value):
        return _mistake("artifact", "an artifact is the name of a file in the folder artifacts")
    return Addition(value)


def is_name(text: str) -> bool:
    """Whether it names a file in a folder, and nothing else."""
    return (
        bool(text.strip())
        and text.isprintable()
        and "/" not in text
        and not text.startswith(".")
        and len(text.encode("utf-8", errors="replace")) <= _NAME_MAX_BYTES
    )


def _ask(value: Any) -> Item:
    given = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    question, text = given.get("id"), given.get("question")
    schema = given.get("schema")
    if given.keys() - {"schema"} != {"id", "question"} or not _is_question_id(question):
        return _mistake("ask", 'a question is {"id": "a name of its own", "question": "…"}')
    if not isinstance(text, str) or not text.strip():
        return _mistake("ask", "a question needs a text")
    if schema is not None and not isinstance(schema, dict):
        return _mistake("ask", "the schema of an answer is an object")
    return Ask(question, _paragraphs(text), cast("dict[str, Any] | None", schema))


def _tell(value: Any) -> Item:
    if not isinstance(value, str) or not value.strip():
        return _mistake("tell", "what is told is a text")
    return Telling(_paragraphs(value))


def _paragraphs(text: str) -> str:
    plain = _printable(text[: 2 * QUESTION_MAX_CHARS], lines=True).strip()
    return plain if len(plain) <= QUESTION_MAX_CHARS else plain[: QUESTION_MAX_CHARS - 1] + "…"


def _withdraw(value: Any) -> Item:
    if not _is_question_id(value):
        return _mistake("withdraw", "what is withdrawn is the id of a question")
    return Withdrawal(value)


def _is_question_id(value: Any) -> TypeGuard[str]:
    # It becomes the name of a file.
    return (
        isinstance(value, str)
        and 0 < len(value) <= QUESTION_ID_MAX_CHARS
        and value.isascii()
        and value.replace("-", "").replace("_", "").isalnum()
    )


_READERS: dict[str, Callable[[Any], Item]] = {
    "status": _status,
    "progress": _progress,
    "result": _result,
    "artifact": _artifact,
    "ask": _ask,
    "withdraw": _withdraw,
    "tell": _tell,
}
