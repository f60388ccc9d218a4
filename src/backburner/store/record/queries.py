"""The named statements: those of `sql/queries.sql`, which every database takes, and its own."""

import os
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

_COMMON = os.path.join(os.path.dirname(__file__), "sql", "queries.sql")
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def named(own: str, *, open_question: str, artifacts: str = "NULL") -> dict[str, str]:
    """Every statement by its name, with the columns of rows.py in the places that ask for them.

    ``own`` are those that only this database takes. ``open_question`` makes JSON of the question
    that a task `t` waits for, and ``artifacts`` what a shared record knows of its files; databases
    differ there.
    """
    with open(_COMMON, encoding="utf-8") as file:
        parts = [*_NAME.split(file.read())[1:], *_NAME.split(own)[1:]]
    statements = {
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
        .replace("{artifacts}", artifacts)
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
    assert len(statements) == len(parts) // 2, "a statement stands in both files"
    return statements
