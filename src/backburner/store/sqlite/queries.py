"""The named statements as SQLite takes them, loaded once."""

import os
from functools import cache

from backburner.store.record.queries import named

SQL_FOLDER = os.path.join(os.path.dirname(__file__), "sql")

_OPEN_QUESTION = """CASE t.state WHEN 'input_required' THEN (
    SELECT json_object('id', q.id, 'text', q.text, 'asked_at', q.asked_at,
                       'schema', json(q.schema)) FROM question q
    WHERE q.task = t.seq AND q.attempt = t.attempt AND q.answer IS NULL AND q.withdrawn = 0
      AND q.approval = 0
    ORDER BY q.seq LIMIT 1) END"""


def sql_file(name: str) -> str:
    """The text of a file beside this one."""
    with open(os.path.join(SQL_FOLDER, name), encoding="utf-8") as file:
        return file.read()


@cache
def _all() -> dict[str, str]:
    return named(sql_file("queries.sql"), open_question=_OPEN_QUESTION)


def query(name: str) -> str:
    """The statement of this name."""
    return _all()[name]
