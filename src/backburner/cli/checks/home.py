"""The home: whether it can be used, on what it lies, how much room there is, and its record."""

import os
import shutil
import tempfile
from pathlib import Path

from backburner.cli.checks.finding import Finding, Level
from backburner.cli.place import Place
from backburner.model.errors import BackburnerError
from backburner.runtime.glance import Glance
from backburner.store.sqlite import filesystem
from backburner.work.log.marks import byte_count

_LITTLE_ROOM = 500_000_000
_NO_ROOM = 20_000_000


def existing(root: Path) -> Path:
    """The home, or the nearest folder above it that exists."""
    return next(path for path in (root, *root.parents) if path.exists())


def home(root: Path, folder: Path) -> Finding:
    """Whether it is there, or can be made, and is private."""
    remedy = "choose another one with --home or BACKBURNER_HOME"
    if not folder.is_dir():
        return Finding("home", Level.FAIL, f"{folder} is no folder", remedy)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding("home", Level.FAIL, f"{folder}: {error.strerror}", remedy)
    if folder != root:
        return Finding("home", Level.OK, f"{root} (made at the first start)")
    if folder.stat().st_mode & 0o077:
        return Finding(
            "home",
            Level.WARN,
            f"{root} is open to other users",
            f"chmod 700 {root}",
            "output, commands and what tasks were started with may hold secrets",
        )
    return Finding("home", Level.OK, str(root))


def file_system(folder: Path) -> Finding:
    """What the home lies on."""
    kind = filesystem.kind_of(folder)
    if filesystem.refused_kind(folder) is not None:
        return Finding(
            "file system",
            Level.FAIL,
            f"{kind}: a home cannot lie on a network file system",
            f"put it on a local disk; {filesystem.ALLOW}=1 allows it where one machine uses it",
            "SQLite's WAL, the locks and the sockets work on one machine only",
        )
    if filesystem.is_network(kind) or kind == "virtiofs":
        return Finding(
            "file system",
            Level.WARN,
            f"{kind}: no other machine may use this home",
            "put it on a local disk",
            "two machines that write to the record would damage it",
        )
    return Finding("file system", Level.OK, kind)


def room(folder: Path) -> Finding:
    """How much more fits."""
    free = shutil.disk_usage(folder).free
    text = f"{byte_count(free)} free"
    if free >= _LITTLE_ROOM:
        return Finding("disk", Level.OK, text)
    level = Level.FAIL if free < _NO_ROOM else Level.WARN
    return Finding(
        "disk",
        level,
        text,
        "free some space, or: backburner prune --max-size 100M",
        "a start needs about 20 kB, a long log 1.3 MB; on a full disk starts are refused",
    )


def record(at: Place) -> Finding:
    """Whether the record can be read."""
    try:
        with Glance(at.home) as glance:
            active, _ = glance.recent(at.scope, limit=0)
    except BackburnerError as error:
        return Finding("record", Level.FAIL, error.message, error.remedy)
    if not os.path.exists(at.home.database):
        return Finding("record", Level.OK, "none yet")
    count = active_tasks(len(active))
    return Finding("record", Level.OK, f"{count} in session {at.session!r}")


def active_tasks(count: int) -> str:
    """So many of them."""
    return f"{count} active task" if count == 1 else f"{count} active tasks"
