"""The time, saying something back, how far it is, and a list of what is to be done."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from backburner.model.errors import ToolError
from backburner.model.outcome import Outcome
from backburner.work.tools.context import Context
from backburner.work.tools.tool import tool

TODOS_MAX = 200
_TODO_MAX_CHARS = 1000


@tool(display_name="Current time", readonly=True, idempotent=True)
async def get_current_time(
    timezone: Annotated[
        str, Field(description="IANA name of a time zone, such as Europe/Berlin", max_length=64)
    ] = "UTC",
) -> dict[str, Any]:
    """Get the current date and time in a time zone."""
    from zoneinfo import ZoneInfo

    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):  # not found; leads outside; is a folder of zones
        raise ToolError(
            f"there is no time zone {timezone!r}", remedy="IANA names: UTC, Europe/Berlin"
        ) from None
    now = datetime.now(UTC).astimezone(zone)
    return {
        "time": now.isoformat(timespec="seconds"),
        "timezone": timezone,
        "weekday": now.strftime("%A"),
        "unix": int(now.timestamp()),
    }


@tool(display_name="Echo", readonly=True, idempotent=True)
async def echo(text: Annotated[str, Field(description="What to give back")]) -> str:
    """Give back the text as it is."""
    return text


@tool(display_name="Report progress", idempotent=True)
async def report_progress(
    context: Context,
    current: Annotated[float, Field(description="How much is done", ge=0, allow_inf_nan=False)],
    total: Annotated[
        float | None, Field(description="How much there is in all", ge=0, allow_inf_nan=False)
    ] = None,
    unit: Annotated[str | None, Field(description="Of what, such as files", max_length=40)] = None,
    label: Annotated[str | None, Field(description="What is done now", max_length=200)] = None,
) -> str:
    """Tell the people who wait how far this work is."""
    context.progress(current, total, unit, label)
    counted = f"{current:g}" if total is None else f"{current:g} of {total:g}"
    return " ".join(part for part in (counted, unit) if part)


class Todo(BaseModel):
    """One thing to do."""

    model_config = ConfigDict(extra="forbid")

    content: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=_TODO_MAX_CHARS),
        Field(description="What is to be done"),
    ]
    status: Literal["pending", "in_progress", "completed"] = "pending"


@tool(display_name="Write to-do list", idempotent=True)
async def write_todos(
    todos: Annotated[
        list[Todo], Field(description="The whole list, in order", max_length=TODOS_MAX)
    ],
) -> Outcome:
    """Write the list of what is to be done. It takes the place of the list before it."""
    counts = dict.fromkeys(("pending", "in_progress", "completed"), 0)
    for todo in todos:
        counts[todo.status] += 1
    done = f"{counts['completed']} of {len(todos)} done"
    return Outcome(summary=done, result={"todos": [*todos], "counts": counts})
