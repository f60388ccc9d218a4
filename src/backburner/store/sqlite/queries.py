"""The named statements of `sql/queries.sql`, loaded once."""

import os
import re
from functools import cache

from backburner.store.record.rows import (
    CHANGED_TASK,
    ENDED_TASK,
    JOINED_TASK,
    LIGHT_TASK,
    MESSAGE,
    QUESTION,
    SIGNAL,
)
from backburner.store.record.schedule_reading import SCHEDULE
from backburner.store.record.token_reading import COLUMNS as TOKEN

SQL_FOLDER = os.path.join(os.path.dirname(__file__), "sql")

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def sql_file(name: str) -> str:
    """The text of a file beside this one."""
    with open(os.path.join(SQL_FOLDER, name), encoding="utf-8") as file:
        return file.read()


@cache
def _all() -> dict[str, str]:
    parts = _NAME.split(sql_file("queries.sql"))
    return {
        name: "\n".join(line for line in body.splitlines() if line and not line.startswith("--"))
        .replace("{task}", JOINED_TASK)
        .replace("{light}", LIGHT_TASK)
        .replace("{changed}", CHANGED_TASK)
        .replace("{ended}", ENDED_TASK)
        .replace("{signal}", SIGNAL)
        .replace("{question}", QUESTION)
        .replace("{schedule}", SCHEDULE)
        .replace("{message}", MESSAGE)
        .replace("{token}", TOKEN)
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def query(name: str) -> str:
    """The statement of this name."""
    return _all()[name]
