"""Trustworthy background work for AI agents.

Everything public is here; the rest is private. Names are imported on first use, so that
`import backburner` costs nothing.
"""

TYPE_CHECKING = False  # as of `typing`, which takes a third as long to load as Python itself

if TYPE_CHECKING:
    from typing import Any

    from backburner.app import Backburner, Session, Signal, Task
    from backburner.model.channels import Channel, ChannelKind
    from backburner.model.ending import TaskError
    from backburner.model.errors import (
        Ambiguous,
        BackburnerError,
        Conflict,
        ConnectionRequired,
        InputNotYet,
        InputRefused,
        InternalError,
        InvalidArguments,
        KeeperUnreachable,
        LimitReached,
        NeverReady,
        NobodyAsked,
        NotAllowed,
        NotFound,
        StoreBusy,
        StoreError,
        StoreFull,
        StoreUnusable,
        TimeIsUp,
        ToolError,
        UsageError,
    )
    from backburner.model.events import Event, EventKind
    from backburner.model.limits import Settings
    from backburner.model.order import Queue
    from backburner.model.outcome import Image, Outcome
    from backburner.model.questions import Question
    from backburner.model.signals import SignalKind, SignalState
    from backburner.model.states import ErrorKind, Kind, State
    from backburner.work.log.read import Chunk
    from backburner.work.tools.context import Context

__version__ = "0.1.0"

_HOMES = {
    "backburner.app": ("Backburner", "Session", "Signal", "Task"),
    "backburner.model.channels": ("Channel", "ChannelKind"),
    "backburner.model.ending": ("TaskError",),
    "backburner.model.errors": (
        "Ambiguous",
        "BackburnerError",
        "Conflict",
        "ConnectionRequired",
        "InputNotYet",
        "InputRefused",
        "InternalError",
        "InvalidArguments",
        "KeeperUnreachable",
        "LimitReached",
        "NeverReady",
        "NobodyAsked",
        "NotAllowed",
        "NotFound",
        "StoreBusy",
        "StoreError",
        "StoreFull",
        "StoreUnusable",
        "TimeIsUp",
        "ToolError",
        "UsageError",
    ),
    "backburner.model.events": ("Event", "EventKind"),
    "backburner.model.limits": ("Settings",),
    "backburner.model.order": ("Queue",),
    "backburner.model.outcome": ("Image", "Outcome"),
    "backburner.model.questions": ("Question",),
    "backburner.model.signals": ("SignalKind", "SignalState"),
    "backburner.model.states": ("ErrorKind", "Kind", "State"),
    "backburner.work.log.read": ("Chunk",),
    "backburner.work.tools.context": ("Context",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Ambiguous",
    "Backburner",
    "BackburnerError",
    "Channel",
    "ChannelKind",
    "Chunk",
    "Conflict",
    "ConnectionRequired",
    "Context",
    "ErrorKind",
    "Event",
    "EventKind",
    "Image",
    "InputNotYet",
    "InputRefused",
    "InternalError",
    "InvalidArguments",
    "KeeperUnreachable",
    "Kind",
    "LimitReached",
    "NeverReady",
    "NobodyAsked",
    "NotAllowed",
    "NotFound",
    "Outcome",
    "Question",
    "Queue",
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
    "ToolError",
    "UsageError",
]


def __getattr__(name: str) -> "Any":
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'backburner' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)
