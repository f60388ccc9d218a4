"""The options of `run` that say when a task starts, how often it is tried, and what it may use."""

import re
from typing import Annotated, Any

import typer

from backburner.cli.options import count, seconds, size
from backburner.model.errors import UsageError

AfterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--after",
        metavar="ID",
        help="Start when this task has succeeded, and fail when it does not; repeatable.",
    ),
]
AfterFailureOption = Annotated[
    bool,
    typer.Option("--after-failure", help="With --after: start when it has ended, however it did."),
]
RetriesOption = Annotated[
    str,
    typer.Option(
        "--retries",
        metavar="N",
        help="When it fails, try again up to N times, after 1s, 2s, 4s, … up to 5m. [0]",
        show_default=False,
    ),
]
QueueOption = Annotated[
    str | None,
    typer.Option(
        "--queue", metavar="NAME", help="Wait for a place in this queue; see `backburner queue`."
    ),
]
PriorityOption = Annotated[
    str,
    typer.Option(
        "--priority",
        metavar="N",
        help="Of what waits the highest goes first: -10 to 10. [0]",
        show_default=False,
    ),
]
NiceOption = Annotated[
    str | None,
    typer.Option("--nice", metavar="N", help="Give way to others: -20 to 19. [as the keeper: 0]"),
]
MemoryOption = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Kill it when it uses more than this: 512M, 2G."),
]
CpuTimeOption = Annotated[
    str | None,
    typer.Option(
        "--cpu-time", metavar="TIME", help="End a process of it that computes longer: 90s, 10m."
    ),
]


def read(
    after: list[str] | None,
    retries: str,
    nice: str | None,
    memory: str | None,
    cpu_time: str | None,
    *,
    after_failure: bool,
    queue: str | None,
    priority: str,
) -> dict[str, Any]:
    """As `Session.run` takes them."""
    if after_failure and not after:
        raise UsageError("--after-failure says something about --after", remedy="add --after ID")
    return {
        "after": tuple(after or ()),
        "after_failure": after_failure,
        "retries": count(retries, "--retries"),
        "queue": queue,
        "priority": priority_of(priority),
        "nice": None if nice is None else _niceness(nice),
        "memory": None if memory is None else size(memory, "--memory"),
        "cpu_time": None if cpu_time is None else seconds(cpu_time, "--cpu-time"),
    }


def priority_of(text: str) -> int:
    """What --priority says; whether there is such a one is checked where it counts."""
    if re.fullmatch(r"[+-]?\d{1,3}", text, re.ASCII) is None:
        raise UsageError(
            f"--priority: {text!r} is no number", remedy="give a number from -10 to 10"
        )
    return int(text)


def _niceness(text: str) -> int:
    if re.fullmatch(r"[+-]?\d{1,3}", text, re.ASCII) is None:
        raise UsageError(f"--nice: {text!r} is no number", remedy="give a number from -20 to 19")
    return int(text)
