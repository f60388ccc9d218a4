"""Which home a program means, a folder or the record of many machines in a database; and whose."""

import contextlib
import os

from backburner.model.database import with_password
from backburner.model.errors import UsageError
from backburner.model.home import Home, named_home, shared_home
from backburner.model.limits import DEFAULT_OWNER

DATABASE = "BACKBURNER_DATABASE"
"""The environment variable with the address that a worker works for."""

PASSWORD = "PGPASSWORD"  # noqa: S105 - its name
"""The one in which libpq looks for the password."""

OWNER = "BACKBURNER_OWNER"


def home_of(given: str | os.PathLike[str] | None) -> Home:
    """The home that is given, or BACKBURNER_HOME, or the user's own.

    A job on a worker's machine has the folder of that worker there, and means the record that the
    worker works for, whose address lies in it. UsageError where it does not.
    """
    home = named_home(given)
    if home.shared or not os.path.isfile(home.node):  # by default a worker has a folder there
        return home
    try:
        with open(home.record, encoding="utf-8") as file:
            return shared_home(file.read())
    except OSError:
        raise UsageError(
            f"{home.root} is the folder of a worker that has left, and holds no record",
            remedy="give the address of the record, --home postgresql://…",
        ) from None


def leave_address(home: Home) -> None:
    """For what the commands of this worker start in the same record.

    Not in their environment, which ends up in logs and reports: in a file of this user alone.
    """
    address = with_password(home.address, os.environ.get(PASSWORD))
    fd = os.open(f"{home.record}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(address)
    os.rename(f"{home.record}.new", home.record)


def take_address_away(home: Home) -> None:
    """Nothing runs here any more."""
    with contextlib.suppress(OSError):
        os.unlink(home.record)


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
