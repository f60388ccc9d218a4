"""Signals, as the inbox has them."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from backburner.model.signals import SignalKind, SignalState
from backburner.serve.models.base import Document, Request, Time


class SignalPaths(Document):
    """The files of a task that has ended."""

    log: str
    result: str


class Signal(Document):
    """Something that a session was told, or is to be told."""

    id: str
    key: str
    task: str
    session: str
    kind: SignalKind
    text: str
    data: dict[str, Any]
    state: SignalState
    reason: str | None
    channel: str
    tries: int
    created_at: Time
    delivered_at: Time | None
    retry_at: Time | None
    paths: SignalPaths | None = None


class SignalPage(Document):
    """Signals, oldest first."""

    items: list[Signal]
    next: str | None = Field(description="The cursor of the next page; null for the last one.")


class Acknowledge(Request):
    """These were dealt with."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"keys": ["bg_6c2r8m4e0k9tzx1v:end"]}]}
    )

    keys: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=500)]],
        Field(min_length=1, max_length=1000),
    ]


class Acknowledged(Document):
    """How many of them were not known to be dealt with."""

    acknowledged: int
