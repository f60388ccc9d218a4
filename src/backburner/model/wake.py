"""Wake policies: which of the things that happen to a task its session is told."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from backburner.model.errors import UsageError

ACTIVITY_EVERY_S = 30.0
"""Statuses of one task are told so often at the most: each may cost a turn of a model."""


class Wake(StrEnum):
    """What wakes the session. Questions always do: a task would wait for ever."""

    SILENT = "silent"
    """Nothing else: not its end, and not what it tells."""
    ON_TERMINAL = "on_terminal"
    """Its end, and what it tells on purpose."""
    ON_ACTIVITY = "on_activity"
    """What it says it is doing, too; the latest, now and then."""


IF_PARKED = "told_if_parked"
"""In the specification of a call that somebody waits for: its end is told only where it was parked,
since else they have it."""


def wake_of(spec: Mapping[str, Any]) -> Wake:
    """The policy of a task."""
    given = spec.get("wake")
    return _BY_NAME.get(given, Wake.ON_TERMINAL) if isinstance(given, str) else Wake.ON_TERMINAL


def to_wake(given: str) -> Wake:
    """A policy by its name; UsageError names those that there are."""
    if given not in _BY_NAME:
        raise UsageError(f"{given!r} is no wake policy", remedy=f"choose from {', '.join(Wake)}")
    return Wake(given)


_BY_NAME: dict[str, Wake] = {wake.value: wake for wake in Wake}
