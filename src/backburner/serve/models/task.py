"""A task, and what can be asked about one."""

from typing import Any, Literal

from pydantic import Field

from backburner.model.states import ErrorKind, Kind, State
from backburner.serve.models.base import Document, Time, example


class TaskProgress(Document):
    """How far a task says it is."""

    current: float
    total: float | None
    unit: str | None
    label: str | None


class TaskError(Document):
    """Why a task failed."""

    kind: ErrorKind
    message: str


class TaskOutput(Document):
    """How much it has written."""

    bytes: int
    dropped_bytes: int
    cursor: str = Field(description="After everything that is there: `since` of the next read.")


class TaskPaths(Document):
    """Where its files are, on the machine of the server: nothing where they are not there."""

    dir: str | None
    log: str | None
    result: str | None


class TaskSignal(Document):
    """What became of the signal that tells of its end."""

    state: Literal["pending", "claimed", "delivered", "failed", "dropped"]
    delivered_at: Time | None


class TaskLinks(Document):
    """What it belongs to."""

    parent: str | None
    schedule: str | None


class TaskOrder(Document):
    """What it was told to wait for, and how often it is tried."""

    queue: str | None
    after: list[str]
    after_failure: bool
    retries_left: int
    failures: int
    priority: int


class TaskWait(Document):
    """What keeps it from starting."""

    after: list[str]
    not_before: Time | None
    queue: str | None
    paused: bool
    place: int | None
    owner_limit: int | None = Field(
        description="So many tasks of its owner run, and no more may; else null."
    )
    unserved: str | None = Field(
        description="The queue that no worker takes from which lives; else null."
    )


class TaskAllowance(Document):
    """What it may take of the machine."""

    nice: int | None
    memory: int | None
    cpu_time: float | None


class Question(Document):
    """Something that a task asks, or that is asked about it. Answers are not shown."""

    id: str
    text: str
    asked_at: Time
    answered_at: Time | None
    withdrawn: bool
    schema_: dict[str, Any] | None = Field(
        alias="schema", description="What the answer has to fit."
    )
    asker: str | None = Field(description="The session that wants to stop the task, if one does.")


class Artifact(Document):
    """A file that a task has added."""

    name: str
    bytes: int
    path: str


class Task(Document):
    """One piece of background work."""

    model_config = example(
        id="bg_6c2r8m4e0k9tzx1v",
        session="default",
        owner="local",
        kind="shell",
        title="pytest -q",
        state="running",
        created_at="2026-11-15T09:30:00.000000Z",
    )

    id: str
    session: str
    owner: str
    kind: Kind
    title: str
    state: State
    detail: str | None
    progress: TaskProgress | None
    ready_at: Time | None
    parked_at: Time | None
    exit_code: int | None
    error: TaskError | None
    summary: str | None
    result: Any
    attempt: int
    pid: int | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    max_runtime_s: float | None
    output: TaskOutput
    paths: TaskPaths
    leftovers: int
    signal: TaskSignal | None
    links: TaskLinks
    order: TaskOrder
    wait: TaskWait | None
    allowance: TaskAllowance
    question: Question | None
    artifacts: list[Artifact]
    usage: dict[str, int] | None


class TaskPage(Document):
    """Tasks, newest first."""

    items: list[Task]
    next: str | None = Field(description="The cursor of the next page; null for the last one.")


class TaskInput(Document):
    """What a task was started with, secrets hidden."""

    text: str = Field(description="Its command, call or prompt as a person would write it.")
    command: str | list[str] | None
    call: str | None
    tool: str | None
    agent: str | None
    prompt: str | None
    arguments: dict[str, Any] | None
    cwd: str | None
    env: list[str] = Field(description="The names of variables that were set for it.")
    takes_input: Literal["none", "pipe", "pty"]
    separate_stderr: bool


class TaskResult(Document):
    """How a task ended, or that it has not."""

    state: State
    exit_code: int | None
    error: TaskError | None
    summary: str | None
    result: Any


class OutputChunk(Document):
    """What a task has written since a cursor."""

    model_config = example(
        text="2 passed\n", stderr=None, cursor="1.9", dropped=0, total=9, complete=True
    )

    text: str = Field(description="Standard output, or both streams where they share a log.")
    stderr: str | None = Field(description="Standard error, where it is kept apart.")
    cursor: str = Field(description="Give it to the next read as `since`.")
    dropped: int = Field(description="Bytes since the last cursor that the log has let go of.")
    total: int = Field(description="Bytes that were written so far.")
    complete: bool = Field(description="The task has ended, and nothing follows.")


class Process(Document):
    """One process of a task."""

    pid: int
    parent: int
    command: str
    cpu_percent: float
    memory_bytes: int
    runtime_s: float


class ProcessTree(Document):
    """The processes of a task now, parents before their children."""

    at: Time
    items: list[Process]


class QuestionList(Document):
    """The questions of the present attempt, oldest first."""

    items: list[Question]


class ArtifactList(Document):
    """The files that the present attempt has added."""

    items: list[Artifact]
