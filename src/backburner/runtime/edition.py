"""Which Backburner a keeper is of: its version, and the newest record that it can read.

Said in the file of the keeper lock, so that a newer one knows whom it may ask to leave. One that
says nothing is from before this was said, and older than all.
"""

import re
from functools import cache

import backburner
from backburner.model.values import value
from backburner.store.sqlite.migrations import migrations

_SAID = re.compile(rb"\d+\nbackburner (\S{1,100}) format (\d{1,9})( stays)?\n")
_VERSION = re.compile(r"(\d+(?:\.\d+)*)([^+]*)")

_LONGEST = 200
"""What is read of the file at most."""


@value
class Edition:
    """A version of the program, and how long its keeper stays."""

    version: str
    format: int
    stays: bool = False
    """It does not leave when there is nothing to do: it is kept by a service."""

    def may_replace(self, other: "Edition") -> bool:
        """Whether a keeper of this edition may ask one of the other to leave.

        Never both of each other, or they would take turns without end.
        """
        if self._age != other._age:
            return self._age > other._age
        return self.stays and not other.stays

    @property
    def _age(self) -> tuple[object, ...]:
        # The record first: what can read more is newer, whatever it calls itself.
        return self.format, *_order_of(self.version)

    def said_by(self, pid: int) -> bytes:
        """What the file of the lock says while this process has it."""
        end = " stays" if self.stays else ""
        return f"{pid}\nbackburner {self.version} format {self.format}{end}\n".encode()


UNKNOWN = Edition("0", 0)


@cache
def ours(*, stays: bool = False) -> Edition:
    """The edition of this program."""
    return Edition(backburner.__version__, max(migrations()), stays)


def read_edition(said: bytes, pid: int) -> Edition:
    """From what the file says; what it says of another process is of no use.

    The kernel names a holder in another container 0, and then the file has to be believed.
    """
    match = _SAID.match(said[:_LONGEST])
    if match is None or (pid > 0 and not said.startswith(f"{pid}\n".encode())):
        return UNKNOWN
    return Edition(match[1].decode(errors="replace"), int(match[2]), match[3] is not None)


@cache
def _order_of(version: str) -> tuple[tuple[int, ...], bool, tuple[int, ...]]:
    """As versions follow each other: 0.9 < 0.10.0.dev1 < 0.10rc1 < 0.10 < 0.10.post1."""
    match = _VERSION.match(version)
    if match is None:
        return (), False, ()
    release = [int(number) for number in match[1].split(".")]
    while release and release[-1] == 0:
        release.pop()
    suffix = match[2]
    final = not suffix or "post" in suffix
    stage = () if final else (0 if "dev" in suffix else ord(suffix.lstrip(".-_")[:1] or "a"),)
    return tuple(release), final, (*stage, *(int(number) for number in re.findall(r"\d+", suffix)))
