"""Sessions, workers, tools, and what a person wants to see first."""

from typing import Any, Literal

from pydantic import Field

from backburner.model.policy import Role
from backburner.model.states import ErrorKind, Kind, State
from backburner.serve.models.base import Document, Request, Time, example


class Me(Document):
    """Who the token of this request stands for."""

    model_config = example(owner="local", role="admin", session=None)

    owner: str
    role: Role
    session: str | None


class Login(Request):
    """A one-time code, or a token. Exactly one of them."""

    model_config = example(code="the part after #login= of the link")

    code: str | None = Field(None, max_length=200)
    token: str | None = Field(None, max_length=200)


class SessionEntry(Document):
    """A session, with how many tasks it has in each state: of those that are not long past."""

    name: str
    owner: str
    parent: str | None = Field(
        description="The task that it is the session of, if it is an agent's."
    )
    counts: dict[State, int]
    last_created_at: Time


class SessionList(Document):
    """The sessions of the caller."""

    items: list[SessionEntry]


class Worker(Document):
    """An application, or the keeper, that carries out tasks."""

    id: str
    pid: int | None
    alive: bool
    tasks: list[str] = Field(description="Those of the caller that it carries out.")


class WorkerList(Document):
    """Who carries out tasks of the caller."""

    keeper: bool = Field(description="Whether a keeper is there.")
    items: list[Worker]


class ToolHints(Document):
    """What a tool says of itself."""

    readonly: bool
    idempotent: bool
    destructive: bool
    supports_background: bool


class Tool(Document):
    """A tool that can be started in the background."""

    name: str
    display_name: str
    description: str
    parameters: dict[str, Any] = Field(description="JSON schema of its arguments.")
    budget: float | None
    policy: str | None
    hints: ToolHints


class ToolList(Document):
    """What `kind: tool` can start, and the agents that `kind: agent` can ask."""

    items: list[Tool]
    agents: list[str]


class Bar(Document):
    """A task on a time line."""

    task: str
    session: str
    title: str
    kind: Kind
    state: State
    error: ErrorKind | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    parent: str | None


class Waiting(Document):
    """A task that waits for a person."""

    task: str
    session: str
    title: str
    question: str
    text: str
    approval: bool = Field(description="Whether another session may stop it, and not its own.")
    asked_at: Time


class Overview(Document):
    """The last hours at a glance."""

    since: Time
    now: Time
    counts: dict[State, int]
    bars: list[Bar] = Field(description="What was there in these hours, newest first.")
    more: bool = Field(description="There were more than are given here.")
    failures: list[Bar]
    waiting: list[Waiting]


class Health(Document):
    """Live: the process answers. Ready: it can do its work."""

    model_config = example(live=True, ready=True, reason=None)

    live: Literal[True]
    ready: bool
    reason: str | None
