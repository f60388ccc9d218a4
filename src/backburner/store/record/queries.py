"""The named statements of a file of SQL: a line `-- name:` opens one."""

import re

from backburner.store.record.rows import (
    CHANGED_TASK,
    JOINED_TASK,
    LIGHT_TASK,
    MESSAGE,
    QUESTION,
    SIGNAL,
    TASK_COLUMNS,
)
from backburner.store.record.schedule_reading import SCHEDULE
from backburner.store.record.token_reading import COLUMNS as TOKEN

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def named(text: str, *, open_question: str) -> dict[str, str]:
    """Every statement by its name, with the columns of rows.py in the places that ask for them.

    ``open_question`` makes JSON of the question that a task `t` waits for; databases differ there.
    """
    parts = _NAME.split(text)
    return {
        name: "\n".join(line for line in body.splitlines() if line and not line.startswith("--"))
        .replace("{task}", JOINED_TASK)
        .replace("{light}", LIGHT_TASK)
        .replace("{changed}", CHANGED_TASK)
        .replace("{columns}", TASK_COLUMNS)
        .replace("{signal}", SIGNAL)
        .replace("{question}", QUESTION)
        .replace("{schedule}", SCHEDULE)
        .replace("{message}", MESSAGE)
        .replace("{token}", TOKEN)
        .replace("{open_question}", open_question)
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }
