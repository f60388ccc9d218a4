"""The one file of a start that says how it stands, from its first moment to its ending.

Made before the start and overwritten in place, so that a full disk cannot lose what it will say.
It is locked (flock) until the wrapper's end, which proves that it lives without trusting a pid. It
holds the wrapper's pid, what the shell complained of, and `exit CODE.` when the command has ended.
With the ending it becomes `result.json`: to make a file costs more than all that is written to it.
"""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from typing import Any

from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder
from backburner.model.values import value
from backburner.work import flock

BLANK = b"\n" * 512
"""What it holds before the start."""

_EXIT = re.compile(r"^exit (\d+)\.$", re.MULTILINE)


@value
class NotBegun:
    """The wrapper never ran a line: the command was certainly not started."""


@value
class Alive:
    """The wrapper lives."""

    pid: int | None
    """None in the moment before it has said so."""


@value
class Ended:
    """The command ended by itself, and its exit code is on disk."""

    code: int
    by_signal: bool


@value
class Vanished:
    """The wrapper is gone and left no exit code; the command may still run."""

    pid: int
    complaint: str


@value
class Lost:
    """Its files, which are made before the start, were deleted: it may have done anything."""


@value
class Settled:
    """How it ended was decided, and only the record does not say so yet."""

    ending: Ending


Condition = NotBegun | Alive | Ended | Vanished | Lost | Settled


def inspect(folder: AttemptFolder) -> Condition:
    """What became of a start. True at any time, after any crash of ours."""
    try:
        alive = flock.is_held(folder.wrapper)
        text = _read(folder.wrapper)
    except FileNotFoundError:
        return _settled(folder.result)
    if text.startswith("{"):
        return _settled(folder.wrapper)
    code = _EXIT.search(text)
    first, _, complaint = (text[: code.start()] if code else text).strip().partition("\n")
    if code:
        number = int(code[1])
        return Ended(number, by_signal=number > 128 and bool(complaint))  # noqa: PLR2004 - 128 + signal
    pid = int(first) if first.isdigit() else None
    if alive:
        return Alive(pid)
    return NotBegun() if pid is None else Vanished(pid, complaint)


def settle(
    folder: AttemptFolder, ending: Ending, *, beside: Mapping[str, Any] | None = None
) -> None:
    """Put `result.json` in place, whole or not at all. OSError where that cannot be.

    Its wrapper has ended, or there never was one. ``beside`` the ending it may say more.
    """
    text = json.dumps({**ending.document(), **(beside or {})}).encode()
    if len(text) <= len(BLANK):
        with contextlib.suppress(FileNotFoundError):
            with open(folder.wrapper, "r+b", buffering=0) as file:
                # In one write: whoever is killed after it leaves a whole document.
                file.write(text.ljust(os.fstat(file.fileno()).st_size, b"\n"))
                file.truncate(len(text))
            os.rename(folder.wrapper, folder.result)
            return
    os.makedirs(folder.path, mode=0o700, exist_ok=True)
    new = f"{folder.result}.{secrets.token_hex(4)}.new"  # several may say that it never began
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "wb") as file:
        file.write(text)
    os.rename(new, folder.result)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(folder.wrapper)


def _settled(path: str) -> Settled | Lost:
    try:
        return Settled(Ending.from_document(json.loads(_read(path))))
    except (OSError, ValueError, TypeError, KeyError):
        return Lost()


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
