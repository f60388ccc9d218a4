"""The command line as others on the machine see it: a password in it is written over.

They can read it until then, and the history of a shell keeps it: the environment or ~/.pgpass are
better places.
"""

import contextlib
import ctypes
import re

from backburner.model.database import hide_passwords

_START, _END = 45, 46
"""Where the kernel says in /proc/self/stat that the words lie, counted from the state."""

_WORD = re.compile(rb"[^\0]+")


def hide_own_passwords() -> None:
    """In this process, for `ps` and its like. Where that cannot be, all stays as it is."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[_START]), int(fields[_END])
        for word in _WORD.finditer(ctypes.string_at(start, end - start)):
            text = word[0].decode(errors="surrogateescape")
            shown = hide_passwords(text, [text]).encode(errors="surrogateescape")
            if shown != word[0]:
                size = len(word[0])
                ctypes.memmove(start + word.start(), shown[:size].ljust(size), size)
