"""The named statements of `sql/queries.sql`, loaded once."""

import os
import re
from functools import cache

from backburner.store.sqlite.rows import (
    CHANGED_TASK,
    JOINED_TASK,
    LIGHT_TASK,
    MESSAGE,
    QUESTION,
    SIGNAL,
    TASK_COLUMNS,
)
from backburner.store.sqlite.schedule_reading import SCHEDULE
from backburner.store.sqlite.token_reading import COLUMNS as TOKEN

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
        .replace("{columns}", TASK_COLUMNS)
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
