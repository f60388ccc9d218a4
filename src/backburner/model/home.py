"""Where things lie in a home folder. Only names: nothing is created or read here.

backburner.db      the record
write.lock         held by the process that is writing to the record
keeper.lock        held by the keeper, whose edition it names
keeper.next        held by the one whose turn it is to become the keeper
keeper.log         what the keeper has to say
workers/           a lock for each application that carries out tasks in itself
gateway/           what chats remember: a folder for each platform, 0700; see `backburner.gateway`
sessions/          the folders that file tools work in, where a session has no other
wake/              a datagram socket for each process that listens
secrets/           the keys of webhooks, 0600
token              the token of the local user for the HTTP API, 0600
launches           environment and folder of the starts that are still to come, 0600
node               in the folder of a worker of a shared record: which one it is
record             there: the address of that record, 0600, for what its commands start in it;
                   of one with a password, where it lies in the worker's memory
trash/             folders of forgotten tasks, on their way out
tasks/ID.ATTEMPT/  output.log, stderr.log, marks, input (a socket), and wrapper, which becomes
                   result.json; what the job says of itself: report, answers/, artifacts/,
                   messages/; how a function or tool ended: outcome, internal.log
"""

import os
import sys
from dataclasses import field
from pathlib import Path

from backburner.model.database import (
    check_address,
    identity,
    is_database,
    is_no_folder,
    without_password,
)
from backburner.model.errors import UsageError
from backburner.model.values import value


@value
class AttemptFolder:
    """The folder of one attempt at one task."""

    path: str

    @property
    def log(self) -> str:
        """Standard output, and standard error unless it is kept apart."""
        return f"{self.path}/output.log"

    @property
    def stderr(self) -> str:
        """Standard error, where it is kept apart."""
        return f"{self.path}/stderr.log"

    @property
    def wrapper(self) -> str:
        """How the wrapper shell stands: locked for as long as it lives. Becomes `result`."""
        return f"{self.path}/wrapper"

    @property
    def marks(self) -> str:
        """Lines of time and log offset, for reading since a time."""
        return f"{self.path}/marks"

    @property
    def input(self) -> str:
        """The socket through which a job with input is sent some; see `work.input`."""
        return f"{self.path}/input"

    @property
    def report(self) -> str:
        """Lines of JSON that the job says of itself; the first one makes it. See `work.report`."""
        return f"{self.path}/report"

    @property
    def answers(self) -> str:
        """A file for each question of the job that was answered, named after the question."""
        return f"{self.path}/answers"

    @property
    def messages(self) -> str:
        """A file for each message to the job, named after its number, put there by rename."""
        return f"{self.path}/messages"

    @property
    def artifacts(self) -> str:
        """Files that the job has added to the task."""
        return f"{self.path}/artifacts"

    @property
    def outcome(self) -> str:
        """How a Python function or a tool ended, by itself; see `work.child.outcome`."""
        return f"{self.path}/outcome"

    @property
    def internal(self) -> str:
        """Why a tool failed, where that is not for a model to see."""
        return f"{self.path}/internal.log"

    @property
    def result(self) -> str:
        """How it ended, as JSON."""
        return f"{self.path}/result.json"


@value
class Home:
    """The folder that holds everything of one Backburner."""

    root: Path
    address: str = field(default="", repr=False)
    """Of the database of many machines that holds the record, where it is not in the folder. It may
    hold a password."""

    @property
    def shared(self) -> bool:
        """Whether the record is a database of many machines: it has no keeper then, but nodes."""
        return bool(self.address)

    @property
    def where(self) -> str:
        """What `Backburner.open` is given for it; not to be shown."""
        return self.address or str(self.root)

    @property
    def shown(self) -> str:
        """The same for people."""
        return without_password(self.address) if self.address else str(self.root)

    @property
    def database(self) -> str:
        """The record."""
        return f"{self.root}/backburner.db"

    @property
    def write_lock(self) -> str:
        """Serialises the writers of all processes."""
        return f"{self.root}/write.lock"

    @property
    def keeper_lock(self) -> str:
        """Elects the keeper."""
        return f"{self.root}/keeper.lock"

    @property
    def keeper_next(self) -> str:
        """Whose turn it is to become the keeper; see `runtime.succession`."""
        return f"{self.root}/keeper.next"

    @property
    def keeper_log(self) -> str:
        """What the keeper has to say."""
        return f"{self.root}/keeper.log"

    @property
    def wake(self) -> str:
        """Sockets of the listening processes."""
        return f"{self.root}/wake"

    @property
    def workers(self) -> str:
        """A file for each worker, which it holds a lock on for as long as it lives."""
        return f"{self.root}/workers"

    def worker_lock(self, worker_id: str) -> str:
        """The lock of one of them."""
        return f"{self.workers}/{worker_id}"

    @property
    def sessions(self) -> str:
        """The folders of sessions that were given none."""
        return f"{self.root}/sessions"

    @property
    def gateway(self) -> str:
        """What the gateways of this home keep."""
        return f"{self.root}/gateway"

    @property
    def tasks(self) -> str:
        """A folder for each attempt at each task."""
        return f"{self.root}/tasks"

    @property
    def trash(self) -> str:
        """Folders of forgotten tasks, which nobody looks for any more."""
        return f"{self.root}/trash"

    @property
    def secrets(self) -> str:
        """A file for each webhook with the key that it signs with."""
        return f"{self.root}/secrets"

    @property
    def token(self) -> str:
        """The token of whoever can read this folder; see `runtime.tokens`."""
        return f"{self.root}/token"

    @property
    def node(self) -> str:
        """The name of the worker whose folder this is; see `runtime.node`."""
        return f"{self.root}/node"

    @property
    def record(self) -> str:
        """The address that the worker works for whose folder this is."""
        return f"{self.root}/record"

    @property
    def launches(self) -> str:
        """What the starts that are still to come will need; see `work.handover`."""
        return f"{self.root}/launches"

    def attempt(self, task_id: str, attempt: int) -> AttemptFolder:
        """The folder of one attempt."""
        return AttemptFolder(f"{self.root}/tasks/{task_id}.{attempt}")


def named_home(given: str | os.PathLike[str] | None) -> Home:
    """The home that is given, or BACKBURNER_HOME, or the user's own.

    An address of a database has a folder of its own for copies of output.
    """
    text = _named(given)
    if not is_database(text):
        return Home(resolve_home(given))
    return shared_home(text)


def shared_home(address: str) -> Home:
    """The record in this database; UsageError where that is no address."""
    import hashlib  # `backburner ls` of a folder does without

    check_address(address)
    name = hashlib.blake2b(identity(address).encode(), digest_size=8).hexdigest()
    return Home(own_folder() / f"shared-{name}", address)


def resolve_home(given: str | os.PathLike[str] | None) -> Path:
    """The home folder: given, or BACKBURNER_HOME, or the platform's state folder."""
    text = _named(given)
    if is_database(text):
        raise UsageError(
            "a folder is needed here, and no database", remedy="give the home folder to --home"
        )
    if is_no_folder(text):  # which may hold a password: it is not repeated
        raise UsageError(
            "that is neither a folder nor the address of a record",
            remedy="an address begins with postgresql://",
        )
    if text:
        return _spelled(os.path.expanduser(text))
    return _state_folder()


def own_folder() -> Path:
    """Where this user's things of all records lie."""
    named = _named(None)
    return _state_folder() if is_database(named) else resolve_home(None)


def _named(given: str | os.PathLike[str] | None) -> str:
    return os.fspath(given) if given is not None else os.environ.get("BACKBURNER_HOME", "")


def _state_folder() -> Path:
    if sys.platform == "darwin":
        return _spelled(Path.home() / "Library" / "Application Support" / "backburner")
    state = os.environ.get("XDG_STATE_HOME")
    return _spelled((Path(state) if state else Path.home() / ".local" / "state") / "backburner")


def _spelled(folder: str | Path) -> Path:
    """The same whichever links it is reached by: by it the processes of a home are found."""
    return Path(os.path.realpath(folder))
