"""Calls that outlived their budget (D3, D10): the fields are those of `check_background_tool`."""

from typing import Any, Literal

from backburner.serve.models.base import Document


class BackgroundToolStatus(Document):
    """How one parked call stands."""

    type: Literal["background_tool_status"]
    message: str
    session_id: str
    status: Literal["completed", "still_running", "cancelled", "error"]
    tool: str
    background_id: str
    output: Any
    waited_seconds: float


class BackgroundToolListEntry(Document):
    """One line of a list."""

    background_id: str
    tool: str
    age_seconds: float
    done: bool


class BackgroundToolList(Document):
    """Every parked call of a session, newest first."""

    type: Literal["background_tool_list"]
    message: str
    session_id: str
    tasks: list[BackgroundToolListEntry]
