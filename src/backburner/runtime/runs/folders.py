"""The folders of tasks that may be carried out on another machine than they were started on."""

import os

from backburner.model.home import Home
from backburner.work.tools.own_folder import OwnFolder

_ROOM = 1 << 20
"""Bytes: less than any job needs for its folder and the first of its output."""


def kept_folder(folder: str | None, home: Home) -> str | None:
    """A session's folder as the record keeps it. One of its own has another place on each machine

    of a shared record: it is named by what is the same on all of them.
    """
    if home.shared and isinstance(folder, OwnFolder):
        return os.path.relpath(folder, home.sessions)
    return folder


def folder_here(kept: str | None, home: Home) -> str | None:
    """The place of such a folder on this machine."""
    return None if kept is None else os.path.join(home.sessions, kept)


def missing_folder(folder: str | None) -> str | None:
    """Why nothing can be carried out in it here; None where something can."""
    if folder is None or isinstance(folder, OwnFolder) or os.path.isdir(folder):
        return None
    return f"there is no folder {folder}"


def no_room(home: Home) -> str | None:
    """Why nothing can be begun in it; None where something can.

    A machine that fails at each start is the quickest of all, and would empty the queues.
    """
    space = os.statvfs(home.root)
    if space.f_bavail * space.f_frsize >= _ROOM and (space.f_favail or not space.f_files):
        return None
    return f"there is no room in {home.root}"
