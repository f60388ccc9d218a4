"""What a caller leaves for the keeper to start a task with: environment, folder, umask.

The environment holds secrets, so it is not part of the record: it lies in one file of the home that
only the owner can read, and its piece is freed when the start was made. One file for all, because
making a file costs a start more than its durable commit. Pieces are appended whole, so any number
of processes may do it at once, and begin at a block, so that freeing one frees its disk space.

Where the record is shared by many machines, the launch goes there, sealed (`sealing`) and with no
more of the environment than what was given for this start: the rest is the node's. The record
keeps it apart, and sees to its end.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from backburner.model.database import is_no_folder
from backburner.model.home import Home
from backburner.model.redaction import HIDDEN
from backburner.model.values import value
from backburner.work import linux
from backburner.work.assignment import inherited_environment
from backburner.work.process.wrapper import Launch
from backburner.work.sealing import seal, unseal

_BLOCK = 4096
_LEFT_AT = "left_at"
_GIVEN = "given"
_OF_A_WORKER = ("BACKBURNER_DATABASE", "BACKBURNER_POOLER", "PGPASSWORD")
"""How it gets to the record, which is not for what it starts."""
_ADDRESSES = ("BACKBURNER_HOME", "BACKBURNER_DATABASE", "BACKBURNER_POOLER")
_BEGIN = b"\x01"
"""Opens a piece: then the task's id and a line of JSON, which escapes control characters, so that
no later block of a piece looks like the first."""


@value
class Piece:
    """One hand-over that is there."""

    name: str
    task: str
    age_s: float


def leave(home: Home, task_id: str, launch: Launch) -> str:
    """Leave a launch for the keeper. Answers the name of the piece; OSError where it cannot be.

    For a shared record, what it makes a name of.
    """
    document = {_LEFT_AT: time.time()}
    names = [field.name for field in fields(Launch)]
    document |= {name: getattr(launch, name) for name in names if name != _GIVEN}
    if home.shared:
        return seal(json.dumps(document | {"environment": dict(launch.given)}), task_id)
    text = _opening(task_id) + json.dumps(document).encode("ascii")
    piece = text.ljust(-(-len(text) // _BLOCK) * _BLOCK, b"\n")
    fd = os.open(home.launches, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)  # not while `tidy` cuts the file
        written = os.write(fd, piece)
        offset = os.lseek(fd, 0, os.SEEK_CUR) - written
    finally:
        os.close(fd)
    name = f"{offset}+{len(piece)}"
    if written < len(piece):
        discard(home, task_id, name)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return name


def for_record(home: Home, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec as the record of this home keeps it.

    Only its user reads a home folder, so values under names that are not secret stay, for `rerun`.
    Of a shared record there are copies and logs: of variables it has the names alone.
    """
    if not home.shared or not spec.get("env"):
        return dict(spec)
    return {**spec, "env": dict.fromkeys(spec["env"], HIDDEN)}


def take(home: Home, task_id: str, name: str) -> Launch:
    """Read what was left. OSError, ValueError or TypeError where it is gone or broken."""
    offset, length = _range(name)
    with open(home.launches, "rb", buffering=0) as file:
        text = os.pread(file.fileno(), length, offset)
    opening = _opening(task_id)
    if not text.startswith(opening):
        raise FileNotFoundError(errno.ENOENT, "it was discarded", home.launches)
    document = json.loads(text[len(opening) :])
    del document[_LEFT_AT]
    return Launch(**document)


def opened(kept: str, task_id: str) -> Launch:
    """What a shared record has kept. ValueError or TypeError where it is broken."""
    document = json.loads(unseal(kept, task_id))
    del document[_LEFT_AT]
    given = document["environment"]
    return Launch(**document | {"environment": environment_here(given), _GIVEN: given})


def environment_here(given: Mapping[str, str]) -> dict[str, str]:
    """What a node starts a command with that was given these."""
    own = inherited_environment()
    for name in _OF_A_WORKER:
        own.pop(name, None)
    return own | dict(given)


def environment_for_strangers(*, shared: bool) -> dict[str, str]:
    """What a program is started with that has no business with the record, whichever that is.

    PGPASSWORD stays where nothing names a database of ours: it is for one of the program's then.
    """
    own = inherited_environment()
    named = [name for name in _ADDRESSES if is_no_folder(own.get(name, ""))]
    for name in (*named, *(_OF_A_WORKER if named or shared else ())):
        own.pop(name, None)
    return own


def discard(home: Home, task_id: str, name: str | None) -> None:
    """The start was made, or never will be: the environment goes."""
    if name is None or home.shared:
        return
    offset, length = _range(name)
    opening = _opening(task_id)
    with contextlib.suppress(OSError), open(home.launches, "r+b", buffering=0) as file:
        if os.pread(file.fileno(), len(opening), offset) != opening:
            return  # discarded before; the place may be another task's by now
        try:
            linux.punch_hole(file.fileno(), offset, length)
        except OSError:  # not on this file system: what matters is that nobody can read it
            os.pwrite(file.fileno(), bytes(length), offset)


def pieces(home: Home) -> Iterator[Piece]:
    """Everything that was left and not discarded."""
    try:
        file = open(home.launches, "rb", buffering=0)  # noqa: SIM115 - closed below
    except FileNotFoundError:
        return
    now = time.time()
    with file:
        for offset in _data_blocks(file.fileno()):
            if os.pread(file.fileno(), 1, offset) == _BEGIN:
                text = _piece_at(file.fileno(), offset)
                task_id, _, document = text[len(_BEGIN) :].partition(b"\n")
                try:
                    age = now - json.loads(document)[_LEFT_AT]
                except (ValueError, KeyError):  # cut short by a full disk or a crash
                    age = float("inf")
                yield Piece(f"{offset}+{len(text)}", task_id.decode(errors="replace"), age)


def tidy(home: Home) -> None:
    """Give the file its first size again, if nothing is in it."""
    with contextlib.suppress(OSError), open(home.launches, "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not any(pieces(home)):
            os.ftruncate(file.fileno(), 0)


def _range(name: str) -> tuple[int, int]:
    offset, _, length = name.partition("+")
    return int(offset), int(length)


def _opening(task_id: str) -> bytes:
    return _BEGIN + task_id.encode() + b"\n"


def _data_blocks(fd: int) -> Iterator[int]:
    """Offsets of the blocks that are not holes."""
    offset = 0
    while True:
        try:
            offset = os.lseek(fd, offset, os.SEEK_DATA) // _BLOCK * _BLOCK
        except OSError:  # ENXIO: no more
            return
        yield offset
        offset += _BLOCK


def _piece_at(fd: int, offset: int) -> bytes:
    text = b""
    while block := os.pread(fd, _BLOCK, offset + len(text)):
        if text and block[:1] in (_BEGIN, b"\0"):
            break
        text += block
    return text
