"""The one file of a start that says how it stands, from its first moment to its ending.

Made before the start and overwritten in place, so that a full disk cannot lose what it will say.
It is locked (flock) until the wrapper's end, which proves that it lives without trusting a pid. It
holds the wrapper's pid, what the shell complained of, and `exit CODE.` when the command has ended.
With the ending it becomes `result.json`: to make a file costs more than all that is written to it.
"""

import contextlib
import errno
import json
import os
import re
import secrets
from collections.abc import Mapping
from typing import Any

from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder
from backburner.model.limits import RESULT_MAX_BYTES
from backburner.model.values import value
from backburner.work import flock
from backburner.work.plain_file import open_plain
from backburner.work.result import no_number, problem_with

BLANK = b"\n" * 512
"""What it holds before the start."""

_LONGEST = 16 * RESULT_MAX_BYTES
"""Of what is read of it: a job can write there, too. A character may take six bytes in JSON."""

_LONGEST_RESULT = 6 * RESULT_MAX_BYTES
"""An agent's answer was measured as text."""

_OUR_WANT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""These say nothing of the file, and pass."""

_EXIT = re.compile(r"^exit ([0-9]{1,3})\.$", re.MULTILINE)
_PID = re.compile(r"[0-9]{1,7}")


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
    """Its files, which are made before the start, were deleted or replaced: it may have done

    anything.
    """


@value
class Settled:
    """How it ended was decided, and only the record does not say so yet."""

    ending: Ending


Condition = NotBegun | Alive | Ended | Vanished | Lost | Settled


def inspect(folder: AttemptFolder) -> Condition:
    """What became of a start. True at any time, after any crash of ours.

    A job has its folder in its hands: whatever it has put in the place of its files, it can be
    stopped, and it ends.
    """
    try:
        alive = flock.is_held(folder.wrapper)
        text = _read(folder.wrapper)
    except OSError as error:
        _pass_on_our_want(error)
        return _settled(folder.result)
    if text.startswith("{"):
        return _settled(folder.wrapper)
    code = _EXIT.search(text)
    first, _, complaint = (text[: code.start()] if code else text).strip().partition("\n")
    if code:
        number = int(code[1])
        return Ended(number, by_signal=number > 128 and bool(complaint))  # noqa: PLR2004 - 128 + signal
    pid = int(first) if _PID.fullmatch(first) else None
    if alive:
        return Alive(pid)
    return NotBegun() if pid is None else Vanished(pid, complaint)


def settle(
    folder: AttemptFolder, ending: Ending, *, beside: Mapping[str, Any] | None = None
) -> None:
    """Put `result.json` in place, whole or not at all. OSError where that cannot be, and ValueError

    or RecursionError where the ending is no JSON.

    Its wrapper has ended, or there never was one. ``beside`` the ending it may say more.
    """
    text = json.dumps({**ending.document(), **(beside or {})}, allow_nan=False).encode()
    if len(text) <= len(BLANK):
        with contextlib.suppress(FileNotFoundError):
            with open(folder.wrapper, "r+b", buffering=0, opener=open_plain) as file:
                # In one write: whoever is killed after it leaves a whole document.
                file.write(text.ljust(os.fstat(file.fileno()).st_size, b"\n"))
                file.truncate(len(text))
            os.rename(folder.wrapper, folder.result)
            return
    _put(folder, text)


def settle_unbegun(folder: AttemptFolder, ending: Ending) -> None:
    """The same for what never began. Not in place: a keeper may be making the file that says how it

    stands in this very moment, and would write over what was put there.
    """
    _put(folder, json.dumps(ending.document(), allow_nan=False).encode())


def _put(folder: AttemptFolder, text: bytes) -> None:
    os.makedirs(folder.path, mode=0o700, exist_ok=True)
    new = f"{folder.result}.{secrets.token_hex(4)}.new"  # several may say that it never began
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "wb") as file:
        file.write(text)
    os.rename(new, folder.result)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(folder.wrapper)


def _settled(path: str) -> Settled | Lost:
    """A job can write there, too: what the record would not take, or nobody could read, is none."""
    try:
        ending = Ending.from_document(json.loads(_read(path), parse_constant=no_number))
    except OSError as error:
        _pass_on_our_want(error)
        return Lost()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Lost()
    return Lost() if problem_with(ending.result, most=_LONGEST_RESULT) else Settled(ending)


def _read(path: str) -> str:
    fd = open_plain(path)
    try:
        return os.read(fd, _LONGEST).decode(errors="replace")
    finally:
        os.close(fd)


def _pass_on_our_want(error: OSError) -> None:
    if error.errno in _OUR_WANT:
        raise error
