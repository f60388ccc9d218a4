"""Schedules, and the times at which one would fire."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from backburner.model.limits import DEFAULT_MAX_RUNTIME_S
from backburner.model.order import HIGHEST, LOWEST
from backburner.model.schedule import Missed, Overlap
from backburner.model.states import Kind
from backburner.serve.models.base import Document, Request, Time
from backburner.serve.models.start import Seconds

Zone = Annotated[str, StringConstraints(min_length=1, max_length=100)]
When = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Schedule(Document):
    """Work that starts by the clock."""

    created: bool
    status: Literal["scheduled", "paused", "done", "canceled"]
    schedule_id: str
    schedule_type: Literal["once", "cron"]
    cron_expression: str | None
    scheduled_at: Time | None
    timezone: str
    next_trigger_at: Time | None
    enabled: bool
    task_id: str | None = Field(description="The id that the task of its next firing will have.")
    title: str
    tool: str | None
    signal_on_completion: bool
    session: str
    owner: str
    kind: Kind
    missed: Missed
    overlap: Overlap
    jitter: float
    max_runtime_s: float | None
    priority: int
    fired: int
    last_task: str | None
    detail: str | None
    created_at: Time


class ScheduleList(Document):
    """Schedules, oldest first."""

    items: list[Schedule]


class NewSchedule(Request):
    """Exactly one of `cron` and `at`, and the work: see `work`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"cron": "*/10 * * * *", "tz": "Europe/Berlin", "work": "echo done"}]
        }
    )

    cron: When | None = Field(None, description="An expression of 5 fields.")
    at: When | None = Field(None, description="A single time, RFC 3339.")
    tz: Zone = Field("UTC", description="The zone whose clock the expression means.")
    work: str | dict[str, Any] = Field(
        description="A command; or an object with one of `command` (and `cwd`, `env`), `call` (and"
        " `args`), `tool` (and `args`) and `ask` (and `agent`)."
    )
    title: Annotated[str, StringConstraints(max_length=1000)] | None = None
    missed: Literal["skip", "once", "all"] = "once"
    overlap: Literal["skip", "queue", "parallel"] = "skip"
    jitter: float = Field(0, ge=0, le=86400)
    max_runtime_s: Seconds | None = DEFAULT_MAX_RUNTIME_S
    priority: int = Field(0, ge=LOWEST, le=HIGHEST, description="Of its tasks, where they wait.")
    signal_on_completion: bool = True


class ChangeSchedule(Request):
    """Pause it, or go on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"enabled": False}]})

    enabled: bool


class PreviewRequest(Request):
    """Exactly one of `cron` and `at`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"cron": "0 9 * * 1-5", "tz": "Europe/Berlin"}]}
    )

    cron: When | None = None
    at: When | None = None
    tz: Zone = "UTC"
    count: int = Field(5, ge=1, le=50)


class Preview(Document):
    """When it would fire next."""

    times: list[Time]
