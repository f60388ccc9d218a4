"""The named statements as psycopg takes them, loaded once."""

import os
import re
from functools import cache

from backburner.model.values import value
from backburner.store.record.queries import named

SQL_FOLDER = os.path.join(os.path.dirname(__file__), "sql")

_OPEN_QUESTION = """CASE t.state WHEN 'input_required' THEN (
    SELECT json_build_object('id', q.id, 'text', q.text, 'asked_at', q.asked_at,
                             'schema', q.schema::json)::text FROM question q
    WHERE q.task = t.seq AND q.attempt = t.attempt AND q.answer IS NULL AND NOT q.withdrawn
      AND NOT q.approval
    ORDER BY q.seq LIMIT 1) END"""

_ARTIFACTS = """(
    SELECT json_build_object('attempt', a.attempt, 'place', a.place, 'folder', a.folder,
                             'sizes', a.sizes::json)::text FROM artifacts a
    WHERE a.task = t.seq AND (a.attempt = t.attempt OR t.started_at IS NULL)
    ORDER BY a.attempt DESC LIMIT 1)"""

# Nobody who lives takes from the route of `t`.
_UNSERVED = """NOT EXISTS (
    SELECT 1 FROM node n JOIN procrastinate_workers w ON w.id = n.worker  -- who left is none
    WHERE t.route = ANY(n.routes) AND NOT n.draining
      AND greatest(w.last_heartbeat, n.seen_at)
          >= clock_timestamp() - n.silent_s * interval '1 second')"""

_VALUE = re.compile(r"(?<![:']):([a-z_]+)")
_WRITES = re.compile(
    r"\b(INSERT|UPDATE|DELETE|claim_tasks|dispatch|create_at_once|claim_at_once)\b"
)
"""The last are functions of the database."""
_LIST = re.compile(r"(?<![:']):([a-z_]+)::\w+\[\]")


@value
class Query:
    """One statement."""

    text: bytes
    lists: frozenset[str]
    """The values of it that are lists: the record gives them as JSON."""
    writes: bool

    @property
    def of_tenant(self) -> bytes:
        """The same for the role that sees only what is an owner's. It is planned otherwise, and the

        database knows a plan by its text.
        """
        return b"/* tenant */ " + self.text


def sql_file(name: str) -> str:
    """The text of a file beside this one."""
    with open(os.path.join(SQL_FOLDER, name), encoding="utf-8") as file:
        return file.read()


@cache
def _all() -> dict[str, Query]:
    own = (sql_file("queries.sql") + sql_file("checkup.sql")).replace("{unserved}", _UNSERVED)
    statements = named(own, open_question=_OPEN_QUESTION, artifacts=_ARTIFACTS)
    return {name: _query(text) for name, text in statements.items()}


def _query(text: str) -> Query:
    return Query(
        text=_VALUE.sub(r"%(\1)s", text.replace("%", "%%")).encode(),
        lists=frozenset(_LIST.findall(text)),
        writes=_WRITES.search(text) is not None,
    )


def query(name: str) -> Query:
    """The statement of this name."""
    return _all()[name]
