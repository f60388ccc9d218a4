"""The folder of a node: its name, and the proof that it is there once."""

import fcntl
import os
import secrets
import time

from backburner.model.errors import Conflict, StoreUnusable, UsageError
from backburner.model.home import Home
from backburner.work.process.identity import boot_id

_MOST = 200


class NodeHome:
    """Held for as long as the node lives.

    Its file says whose it is: the name, the number of that very file, and the boot in which it was
    last used. A folder that was copied has another file; a whole machine that was copied has not,
    but it was started since, as one that was only restarted.
    """

    def __init__(self, home: Home) -> None:
        """Conflict where another process is this node; UsageError where it cannot be one: a node

        ends what runs in its folder and is not in its record.
        """
        if os.path.exists(home.database):
            raise UsageError(
                f"{home.root} has a record of its own, and what runs there",
                remedy="give the worker a folder of its own, with --home",
            )
        try:
            os.makedirs(home.root, mode=0o700, exist_ok=True)
            self._fd = os.open(home.node, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreUnusable(
                f"the folder of the worker, {home.root}, cannot be made or used: {error.strerror}",
                remedy="give --home a folder on a disk that this user may write to",
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            raise Conflict(
                f"another worker uses {home.root}", remedy="give each a folder, with --home"
            ) from None
        self._tasks = home.tasks
        name, number, boot = [*os.read(self._fd, _MOST).decode().split(), "", "", ""][:3]
        if not name or (number and number != self._number()):
            self.rename()
            return
        self.name = name
        self.may_be_a_copy = boot != boot_id()
        """The record has to be asked whether the name is somebody else's."""

    @property
    def knows_its_record(self) -> bool:
        """It has had it open, so that whoever cannot reach it now has only to wait."""
        return os.path.isdir(self._tasks)

    def note_record(self) -> None:
        """It has it open."""
        os.makedirs(self._tasks, mode=0o700, exist_ok=True)

    @property
    def holder(self) -> str:
        """What tells it from a copy, of the folder or of the whole machine."""
        return f"{boot_id()} {self._number()}"

    def keep_name(self) -> None:
        """It is nobody else's."""
        self.may_be_a_copy = False
        self._write()

    def rename(self) -> None:
        """Take a name that nobody has."""
        self.name = f"nd_{int(time.time())}_{secrets.token_hex(4)}"
        self.keep_name()

    def _number(self) -> str:
        return str(os.fstat(self._fd).st_ino)

    def _write(self) -> None:
        text = f"{self.name} {self._number()} {boot_id()}\n".encode()
        os.pwrite(self._fd, text, 0)
        os.ftruncate(self._fd, len(text))
        os.fsync(self._fd)

    def close(self) -> None:
        """Somebody else may be this node now."""
        os.close(self._fd)
