"""The folder that a session works in where it was given none: one of its own, in the home.

It is made when a tool first asks its context for it, so that a call that uses no files writes
nothing. Names of owners and sessions come from chats: none of them leads anywhere else, and no two
lead to the same folder.
"""

import contextlib
import hashlib
import os
from urllib.parse import quote

_NAME_MAX = 200
"""Most file systems take 255 bytes."""

_OWNER_AND_SESSION = 2


class OwnFolder(str):
    """The path of such a folder. A folder that somebody gave is a plain text, and never made."""

    __slots__ = ()

    def make(self) -> None:
        """Make it, for this user alone, where it is not there yet. OSError."""
        owner = os.path.dirname(self)
        for path in (os.path.dirname(owner), owner, self):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)


def own_folder(sessions: str, owner: str, session: str) -> OwnFolder:
    """That of a session; ``sessions`` is the folder of all of them."""
    return OwnFolder(f"{sessions}/{as_name(owner)}/{as_name(session)}")


def recognised(path: str, sessions: str) -> str:
    """The path, which may have come from a record: as an `OwnFolder` where it is one."""
    if not path.startswith(f"{sessions}/"):
        return path
    parts = path[len(sessions) + 1 :].split("/")
    ours = len(parts) == _OWNER_AND_SESSION and not {"", ".", ".."} & {*parts}
    return OwnFolder(path) if ours else path


def as_name(text: str) -> str:
    """The name of a folder, another one for every text: `%` only stands before what is escaped."""
    name = quote(text, safe="", errors="surrogatepass")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if not name:
        return "%"
    if len(name) <= _NAME_MAX:
        return name
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{name[: _NAME_MAX - len(digest) - 2]}%-{digest}"
