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
    """Who carries out tasks: a worker of many, an application, or the keeper of a home."""

    id: str
    kind: Literal["keeper", "application", "worker"]
    machine: str = Field(description="The name of its machine; empty where it said none.")
    pid: int | None
    alive: bool
    draining: bool = Field(description="It takes on nothing more.")
    queues: list[str] = Field(description="Those that it takes tasks of.")
    tools: list[str] = Field(description="Those that it has.")
    agents: list[str] = Field(description="Those that it has.")
    places: int | None = Field(description="So much it takes on at once; null for no limit.")
    running: int = Field(description="So much it carries out: of all for an admin.")
    heard_at: Time | None = Field(
        description="When it was last heard of; null where it is on this machine and is seen."
    )
    tasks: list[str] = Field(description="Those of the caller that it carries out.")


class WorkerList(Document):
    """Who carries out tasks of the caller."""

    shared: bool = Field(description="Whether many machines share the record.")
    keeper: bool = Field(description="Whether a keeper is there, where they do not.")
    items: list[Worker]


class Line(Document):
    """A queue: a line that tasks wait in."""

    name: str | None = Field(description="null for the tasks that are in no queue.")
    width: int | None = Field(description="So many of it run at once; null for no limit.")
    paused: bool
    waiting: int
    running: int
    workers: int | None = Field(
        description="How many that live take tasks of it; null where the keeper does."
    )


class LineList(Document):
    """The queues: for an admin with all of their tasks, for others with their own."""

    items: list[Line]


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
