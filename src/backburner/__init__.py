"""Trustworthy background work for AI agents.

Everything public is here; the rest is private. Names are imported on first use, so that
`import backburner` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Signal, Task
    from backburner.model.ending import TaskError
    from backburner.model.errors import (
        Ambiguous,
        BackburnerError,
        Conflict,
        KeeperUnreachable,
        LimitReached,
        NotAllowed,
        NotFound,
        StoreBusy,
        StoreError,
        StoreFull,
        StoreUnusable,
        TimeIsUp,
        UsageError,
    )
    from backburner.model.events import Event, EventKind
    from backburner.model.limits import Settings
    from backburner.model.signals import SignalKind, SignalState
    from backburner.model.states import ErrorKind, Kind, State
    from backburner.work.log.read import Chunk

__version__ = "0.1.0"

_HOMES = {
    "backburner.app": ("Backburner", "Session", "Signal", "Task"),
    "backburner.model.ending": ("TaskError",),
    "backburner.model.errors": (
        "Ambiguous",
        "BackburnerError",
        "Conflict",
        "KeeperUnreachable",
        "LimitReached",
        "NotAllowed",
        "NotFound",
        "StoreBusy",
        "StoreError",
        "StoreFull",
        "StoreUnusable",
        "TimeIsUp",
        "UsageError",
    ),
    "backburner.model.events": ("Event", "EventKind"),
    "backburner.model.limits": ("Settings",),
    "backburner.model.signals": ("SignalKind", "SignalState"),
    "backburner.model.states": ("ErrorKind", "Kind", "State"),
    "backburner.work.log.read": ("Chunk",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Ambiguous",
    "Backburner",
    "BackburnerError",
    "Chunk",
    "Conflict",
    "ErrorKind",
    "Event",
    "EventKind",
    "KeeperUnreachable",
    "Kind",
    "LimitReached",
    "NotAllowed",
    "NotFound",
    "Session",
    "Settings",
    "Signal",
    "SignalKind",
    "SignalState",
    "State",
    "StoreBusy",
    "StoreError",
    "StoreFull",
    "StoreUnusable",
    "Task",
    "TaskError",
    "TimeIsUp",
    "UsageError",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'backburner' has no attribute {name!r}")
    return getattr(import_module(module), name)
