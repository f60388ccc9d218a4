"""The options of `schedule add`: when, and what becomes of firings that come at a bad time."""

from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli.options import seconds
from backburner.model.clock import SECOND, Instant
from backburner.model.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime, timedelta

_FIELDS = 5

CronOption = Annotated[
    str | None,
    typer.Option(
        "--cron",
        metavar="EXPRESSION",
        help="Minute, hour, day of month, month, day of week: '30 2 * * MON-FRI'.",
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Once: 2030-12-24T18:00:00+01:00, or +10m from now."),
]
ZoneOption = Annotated[
    str,
    typer.Option(
        "--tz",
        metavar="ZONE",
        help="Whose clocks --cron means: Europe/Berlin. [UTC]",
        show_default=False,
    ),
]
TitleOption = Annotated[
    str | None,
    typer.Option("--title", metavar="TEXT", help="What to call it. [the command itself]"),
]
MissedOption = Annotated[
    str,
    typer.Option(
        "--missed",
        metavar="skip|once|all",
        help="Firings for which no keeper was there: none, one for all, or each is made up "
        "for (100 at the most). [once]",
        show_default=False,
    ),
]
OverlapOption = Annotated[
    str,
    typer.Option(
        "--overlap",
        metavar="skip|queue|parallel",
        help="A firing while the task of an earlier one has not ended: it is left out, waits "
        "for that, or starts. [skip]",
        show_default=False,
    ),
]
JitterOption = Annotated[
    str,
    typer.Option(
        "--jitter",
        metavar="TIME",
        help="Fire up to so much later: 30s. [0]",
        show_default=False,
    ),
]
MaxRuntimeOption = Annotated[
    str,
    typer.Option(
        "--max-runtime",
        metavar="TIME",
        help="End a task after this long; 0 or none for no limit. [1h]",
        show_default=False,
    ),
]
FolderOption = Annotated[
    str | None,
    typer.Option("--cwd", metavar="DIR", help="The folder to run in. [this one]"),
]
VariableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--env", metavar="NAME=VALUE", help="Set a variable beside those of here; repeatable."
    ),
]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="TEXT", help="An id of your own; made before: that one is printed."
    ),
]


def read_when(cron: str | None, at: str | None) -> "str | timedelta":
    """A cron expression, a single time, or in how long."""
    if (cron is None) == (at is None):
        said = "--cron and --at do not go together" if cron else "it is not said when"
        raise UsageError(said, remedy="give --cron EXPRESSION, or --at TIME")
    if cron is not None:
        if len(cron.split()) != _FIELDS:  # an RFC 3339 time would be read as one
            raise UsageError(
                f"--cron: an expression has 5 fields, and {cron!r} has {len(cron.split())}",
                remedy="quote it: --cron '30 2 * * *'",
            )
        return cron
    assert at is not None
    if not at.startswith("+"):
        if not at[:1].isdigit():
            raise UsageError(
                f"--at: {at!r} is no time", remedy="write 2030-12-24T18:00:00+01:00, or +10m"
            )
        return at
    from datetime import timedelta

    try:
        return timedelta(seconds=seconds(at[1:], "--at"))
    except OverflowError:
        raise UsageError(f"--at: {at!r} is too far away") from None


def from_now(when: "str | timedelta", now: Instant) -> "str | datetime":
    """The time that is in so long, where the record has it so late."""
    if isinstance(when, str):
        return when
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(now / SECOND, UTC) + when
    except OverflowError:
        raise UsageError("--at: that time is too far away") from None
