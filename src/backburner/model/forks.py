"""Locks that a child of a fork must not keep: it would hold them after its parent's death."""

import os
import weakref
from typing import Protocol


class Lock(Protocol):
    """A lock of a descriptor."""

    def close(self) -> None:
        """Close the descriptor; the lock stays with whoever else has it open."""
        ...


_all: "weakref.WeakSet[Lock]" = weakref.WeakSet()


def not_for_children(lock: Lock) -> None:
    """Let go of it in every child of a fork."""
    _all.add(lock)


def _forked() -> None:
    for lock in list(_all):
        lock.close()


os.register_at_fork(after_in_child=_forked)
