"""Events, as a list and as a stream."""

from typing import Any

from pydantic import Field

from backburner.model.states import State
from backburner.serve.models.base import Document, Time, example


class Event(Document):
    """One thing that happened to one task."""

    seq: int = Field(description="Its place among all events: the id of the streamed one.")
    task: str
    number: int = Field(description="Its place among those of its task.")
    at: Time
    kind: str
    data: dict[str, Any]


class EventList(Document):
    """The events of a task, oldest first."""

    items: list[Event]
    next: str | None = Field(description="`after` for the next page; null for the last one.")


class StreamedEvent(Document):
    """The data of one server-sent event; its `id` is the place among all events."""

    model_config = example(
        task="bg_6c2r8m4e0k9tzx1v",
        session="default",
        kind="finished",
        at="2026-11-15T09:30:00.000000Z",
        data={"state": "succeeded"},
        state="succeeded",
    )

    task: str
    session: str
    kind: str
    at: Time
    data: dict[str, Any]
    state: State = Field(description="Of the task, as of the moment that this was sent.")
