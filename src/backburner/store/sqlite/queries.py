"""The named statements of `sql/queries.sql`, loaded once."""

import re
from functools import cache
from importlib import resources

from backburner.store.sqlite.rows import TASK_COLUMNS

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def sql_file(name: str) -> str:
    """The text of a file beside this one."""
    return (resources.files(__package__) / "sql" / name).read_text(encoding="utf-8")


@cache
def _all() -> dict[str, str]:
    parts = _NAME.split(sql_file("queries.sql"))
    return {
        name: "\n".join(
            line for line in body.splitlines() if line and not line.startswith("--")
        ).replace("{task}", TASK_COLUMNS)
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def query(name: str) -> str:
    """The statement of this name."""
    return _all()[name]
