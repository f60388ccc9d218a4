"""Everything public is in `backburner`, is pinned here, and costs nothing until it is used."""

import subprocess
import sys

import pytest

import backburner

PUBLIC = [
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


def test_the_public_names_are_these() -> None:
    assert sorted(backburner.__all__) == PUBLIC
    assert len(set(backburner.__all__)) == len(backburner.__all__)


def test_every_public_name_has_a_home() -> None:
    homes = backburner._HOMES  # pyright: ignore[reportPrivateUsage]
    assert sorted(name for names in homes.values() for name in names) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_can_be_imported(name: str) -> None:
    value = getattr(backburner, name)
    assert value.__name__ == name
    assert value.__module__.startswith("backburner.")


def test_an_unknown_name_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        backburner.Nonsense  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(backburner, "Nonsense")


def test_import_backburner_loads_nothing_heavy() -> None:
    """In a fresh interpreter, because this one has loaded everything already."""
    program = "import sys, backburner; print(*sorted(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(run.stdout.split())
    assert "backburner" in loaded
    assert not loaded & {"asyncio", "apsw", "typer", "rich", "psutil", "platformdirs", "re2"}
    assert [name for name in loaded if name.startswith("backburner.")] == []
