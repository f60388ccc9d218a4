"""What can be a result: JSON of a bearable size and depth. Pure.

Whoever gives one is a job, an agent or a tool, and may give anything: what is kept in the record is
in every answer about its task, and everybody has to be able to read it.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from backburner.model.limits import RESULT_MAX_BYTES
from backburner.model.task import preview

NESTING_MAX = 200
"""Python reads no more than a thousand, less what is on the stack already."""

_REASON_MAX_CHARS = 2000


def problem_with(result: Any, *, most: int = RESULT_MAX_BYTES) -> str | None:
    """Why this can be no result. ``most`` bytes as JSON."""
    try:
        size = len(json.dumps(result, allow_nan=False, separators=(",", ":")))
    except (ValueError, TypeError, RecursionError) as error:
        return f"the result is no JSON: {preview(str(error), _REASON_MAX_CHARS)}"
    if size > most:
        limit = f"{most // 1024} KiB"
        return f"the result is longer than {limit}: put it into a file, and return its path"
    if is_too_deep(result):
        return f"the result is nested deeper than {NESTING_MAX} levels"
    return None


def is_too_deep(value: Any) -> bool:
    """Whether whoever reads it as JSON might not be able to. It must not be endless."""
    level = [value]
    for _ in range(NESTING_MAX):
        level = [inner for each in level for inner in _contents(each) if _contents(inner)]
        if not level:
            return False
    return True


def _contents(value: Any) -> Collection[Any]:
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value).values()
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def no_number(text: str) -> float:
    """Of `json.loads`, as its ``parse_constant``: NaN and the infinities are no JSON."""
    raise ValueError(f"{text} is no JSON")
