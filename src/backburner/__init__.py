"""Trustworthy background work for AI agents.

Everything public is here; the rest is private. Names are imported on first use, so that
`import backburner` costs nothing.
"""

TYPE_CHECKING = False  # as of `typing`, which takes a third as long to load as Python itself

if TYPE_CHECKING:
    from typing import Any

    from backburner import intents as intents
    from backburner import markers as markers
    from backburner import sync as sync
    from backburner.app import Backburner, Schedule, Session, Signal, Task
    from backburner.model.channels import Channel, ChannelKind
    from backburner.model.ending import TaskError
    from backburner.model.errors import (
        Ambiguous,
        ArtifactsUnreachable,
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
        NoSuchQueue,
        NotAllowed,
        NotFound,
        StoreAway,
        StoreBusy,
        StoreClosed,
        StoreError,
        StoreFull,
        StoreUnusable,
        TimeIsUp,
        ToolError,
        UsageError,
    )
    from backburner.model.events import Event, EventKind
    from backburner.model.followup import Busy, Later
    from backburner.model.limits import Settings
    from backburner.model.order import OwnerLimit, Queue
    from backburner.model.outcome import Image, Outcome
    from backburner.model.questions import Question
    from backburner.model.schedule import Firing, Missed, Overlap, ScheduleState
    from backburner.model.signals import SignalKind, SignalState
    from backburner.model.states import ErrorKind, Kind, State
    from backburner.work.agents.attachments import Attachment
    from backburner.work.agents.builtin import ModelAgent
    from backburner.work.agents.command import CommandAgent
    from backburner.work.agents.protocol import Agent, AgentAnswer, AgentRequest
    from backburner.work.log.read import Chunk
    from backburner.work.tools.context import BlockingContext, Context
    from backburner.work.tools.registry import Registry
    from backburner.work.tools.tool import Tool, tool

__version__ = "0.1.0"

_HOMES = {
    "backburner.app": ("Backburner", "Schedule", "Session", "Signal", "Task"),
    "backburner.model.channels": ("Channel", "ChannelKind"),
    "backburner.model.ending": ("TaskError",),
    "backburner.model.errors": (
        "Ambiguous",
        "ArtifactsUnreachable",
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
        "NoSuchQueue",
        "NobodyAsked",
        "NotAllowed",
        "NotFound",
        "StoreAway",
        "StoreBusy",
        "StoreClosed",
        "StoreError",
        "StoreFull",
        "StoreUnusable",
        "TimeIsUp",
        "ToolError",
        "UsageError",
    ),
    "backburner.model.events": ("Event", "EventKind"),
    "backburner.model.followup": ("Busy", "Later"),
    "backburner.model.limits": ("Settings",),
    "backburner.model.order": ("OwnerLimit", "Queue"),
    "backburner.model.outcome": ("Image", "Outcome"),
    "backburner.model.questions": ("Question",),
    "backburner.model.schedule": ("Firing", "Missed", "Overlap", "ScheduleState"),
    "backburner.model.signals": ("SignalKind", "SignalState"),
    "backburner.model.states": ("ErrorKind", "Kind", "State"),
    "backburner.work.agents.attachments": ("Attachment",),
    "backburner.work.agents.builtin": ("ModelAgent",),
    "backburner.work.agents.command": ("CommandAgent",),
    "backburner.work.agents.protocol": ("Agent", "AgentAnswer", "AgentRequest"),
    "backburner.work.log.read": ("Chunk",),
    "backburner.work.tools.context": ("BlockingContext", "Context"),
    "backburner.work.tools.registry": ("Registry",),
    "backburner.work.tools.tool": ("Tool", "tool"),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}
_PAGES = ("intents", "markers", "sync")
"""Public modules of their own, loaded like the names when they are first used."""

__all__ = [
    "Agent",
    "AgentAnswer",
    "AgentRequest",
    "Ambiguous",
    "ArtifactsUnreachable",
    "Attachment",
    "Backburner",
    "BackburnerError",
    "BlockingContext",
    "Busy",
    "Channel",
    "ChannelKind",
    "Chunk",
    "CommandAgent",
    "Conflict",
    "ConnectionRequired",
    "Context",
    "ErrorKind",
    "Event",
    "EventKind",
    "Firing",
    "Image",
    "InputNotYet",
    "InputRefused",
    "InternalError",
    "InvalidArguments",
    "KeeperUnreachable",
    "Kind",
    "Later",
    "LimitReached",
    "Missed",
    "ModelAgent",
    "NeverReady",
    "NoSuchQueue",
    "NobodyAsked",
    "NotAllowed",
    "NotFound",
    "Outcome",
    "Overlap",
    "OwnerLimit",
    "Question",
    "Queue",
    "Registry",
    "Schedule",
    "ScheduleState",
    "Session",
    "Settings",
    "Signal",
    "SignalKind",
    "SignalState",
    "State",
    "StoreAway",
    "StoreBusy",
    "StoreClosed",
    "StoreError",
    "StoreFull",
    "StoreUnusable",
    "Task",
    "TaskError",
    "TimeIsUp",
    "Tool",
    "ToolError",
    "UsageError",
    "tool",
]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _PAGES:
        return import_module(f"backburner.{name}")
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'backburner' has no attribute {name!r}")
    return getattr(import_module(module), name)
