"""Which home a program means, a folder or the record of many machines in a database; and whose."""

import contextlib
import os

from backburner.model.database import identity, with_password
from backburner.model.errors import UsageError
from backburner.model.home import Home, named_home, shared_home
from backburner.model.limits import DEFAULT_OWNER

DATABASE = "BACKBURNER_DATABASE"
"""The environment variable with the address that a worker works for."""

PASSWORD = "PGPASSWORD"  # noqa: S105 - its name
"""The one in which libpq looks for the password."""

OWNER = "BACKBURNER_OWNER"

_IN_MEMORY = "in memory: "


def home_of(given: str | os.PathLike[str] | None) -> Home:
    """The home that is given, or BACKBURNER_HOME, or the user's own.

    A job on a worker's machine has the folder of that worker there, and means the record that the
    worker works for, whose address lies in it. UsageError where it does not.
    """
    home = named_home(given)
    if home.shared or not os.path.isfile(home.node):  # by default a worker has a folder there
        return home
    try:
        return shared_home(_left_address(home))
    except OSError:
        raise UsageError(
            f"{home.root} is the folder of a worker that has left, and holds no record",
            remedy="give the address of the record, --home postgresql://…, or start the worker",
        ) from None


def leave_address(home: Home) -> int | None:
    """For what the commands of this worker start in the same record.

    Not in their environment, which ends up in logs and reports: in a file of this user alone. One
    with a password is on no disk: the file says where it lies in the memory of this process, for as
    long as the answer is open.
    """
    address = with_password(home.address, os.environ.get(PASSWORD))
    held = None
    if identity(address) != address:
        name = f"backburner-{os.urandom(8).hex()}"
        held = os.memfd_create(name)
        os.write(held, address.encode())
        # As the kernel names this process there, which may be in a container.
        address = f"{_IN_MEMORY}/proc/{os.readlink('/proc/self')}/fd/{held} {name}"
    fd = os.open(f"{home.record}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(address)
    os.rename(f"{home.record}.new", home.record)
    return held


def _left_address(home: Home) -> str:
    with open(home.record, encoding="utf-8") as file:
        left = file.read()
    if not left.startswith(_IN_MEMORY):
        return left
    path, _, name = left.removeprefix(_IN_MEMORY).partition(" ")
    # Another process may have the number of one that has died.
    if not os.readlink(path).startswith(f"/memfd:{name}"):
        raise FileNotFoundError(path)
    with open(path, encoding="utf-8") as file:
        return file.read()


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
