"""Which home a program means, a folder or the record of many machines in a database; and whose."""

import os

from backburner.model.database import is_database
from backburner.model.errors import UsageError
from backburner.model.home import Home, named_home, shared_home
from backburner.model.limits import DEFAULT_OWNER

DATABASE = "BACKBURNER_DATABASE"
"""The environment variable with the address that a worker works for."""

OWNER = "BACKBURNER_OWNER"


def home_of(given: str | os.PathLike[str] | None) -> Home:
    """The home that is given, or BACKBURNER_HOME, or the user's own.

    A job on a worker's machine has the folder of that worker there, and means the record that the
    worker works for. UsageError where that is not known.
    """
    home = named_home(given)
    if home.shared or not os.path.isfile(home.node):  # by default a worker has a folder there
        return home
    address = os.environ.get(DATABASE, "")
    if not is_database(address):
        raise UsageError(
            f"{home.root} is the folder of a worker, and holds no record",
            remedy="give the address of the record, --home postgresql://…; for what runs on"
            f" workers, start them with {DATABASE} set",
        )
    return shared_home(address)


def owner_here() -> str:
    """Whose tasks a program means: its user's, or in a job those of the job's owner."""
    return os.environ.get(OWNER) or DEFAULT_OWNER


def check_database_installed() -> None:
    """UsageError where the extra is missing that a record in a database needs."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("psycopg", "procrastinate")):
        raise UsageError(
            "the extra `postgres` is not installed", remedy='pip install "backburner[postgres]"'
        )
