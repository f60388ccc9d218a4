"""Every limit and default in one place, each with its reason."""

import math
import os
from collections.abc import Mapping
from dataclasses import fields

from backburner.model.values import value

DEFAULT_MAX_RUNTIME_S = 3600.0
"""An hour (A2): long enough for a build, short enough that a forgotten job ends the same day."""

LONGEST_RUNTIME_S = 100 * 365 * 86400.0
"""Whoever means for ever says so with None."""

DEFAULT_TOOL_BUDGET_S = 600.0
"""Ten minutes (D1): what a caller waits for a tool before the call is parked and goes on."""

DEFAULT_OWNER = "local"
DEFAULT_SESSION = "default"

DEFAULT_GRACE_S = 5.0
"""Between TERM and KILL: time to write a file, not to hang."""

SIGNAL_LEASE_S = 60.0
"""How long a consumer may hold a signal without acknowledging it before another one gets it."""

OUTPUT_MAX_CHARS = 16_000
"""What one read of output gives at most unless told: about 4,000 tokens."""

TITLE_MAX_CHARS = 200
PREVIEW_MAX_CHARS = 60
"""A title made from a command or a prompt is cut here (B2)."""

SPEC_MAX_BYTES = 1024 * 1024
"""A command and its options; the kernel itself takes 2 MiB of arguments and environment."""


RESULT_MAX_BYTES = 1024 * 1024
"""A result that a job gives: it is in the record and in every answer about the task."""

ANSWER_MAX_BYTES = 1024 * 1024
"""What is sent to a task at once: an answer is in the record."""

STATUS_MAX_CHARS = 500
QUESTION_MAX_CHARS = 8_000
"""About 2,000 tokens: a question is told to the session, and often to a model."""

OPEN_QUESTIONS_MAX = 64
QUESTIONS_MAX = 1000
"""In one attempt: each is told, and a job that asks in a loop must not fill the record."""

MESSAGES_MAX = 1000
"""That wait for one task: one that reads none must not fill the record."""

TELLS_MAX = 1000
"""What one attempt may tell its session: each may cost a turn of a model."""

SCHEMA_MAX_BYTES = 16 * 1024
"""A schema for an answer: it is shown to whoever answers."""

ARTIFACTS_MAX = 1000
"""Files that one attempt may add."""

ATTACHMENTS_MAX = 20
ATTACHMENT_MAX_BYTES = 32 * 1024 * 1024
"""Of all files that go with one prompt: providers take about as much in one request."""
ATTACHMENT_ELSEWHERE_MAX_BYTES = 8 * 1024 * 1024
"""The same for an agent on another machine: all writers of the record wait for them."""

AGENT_DEPTH_MAX = 2
"""Work that an agent starts, and work that an agent of that agent starts; no deeper: each level
multiplies the bill."""


@value
class Settings:
    """What a home may be told to do differently: keyword arguments, or `BACKBURNER_…` variables.

    A task records the settings that concern it when it is created, so that the keeper, which is
    another process, obeys the settings of the application that started the task.
    """

    log_head: int = 256 * 1024
    """E6: the first part of the output, where a job says what it is doing."""
    log_tail: int = 1024 * 1024
    """E6: the last part of the output, where a job says how it ended."""
    shell_per_session: int = 64
    """E3: active shell tasks of one session."""
    queued_per_session: int = 1000
    """X9: shell tasks of one session that wait in queues, which are there to hold many."""
    python_per_session: int = 64
    """Active Python tasks of one session, as for the shell."""
    tools_per_session: int = 5
    """E3: active background runs of tools of one session."""
    tools_per_worker: int = 64
    """E3: active background runs of tools in one process."""
    agents_per_session: int = 5
    """Active sub-agents of one session: each is a bill."""
    parked_per_session: int = 32
    """D7: calls of one session that outlived their budget and go on."""
    schedules_per_session: int = 5
    """E9: active schedules of one session."""
    artifact_limit: int = 100 * 1024 * 1024
    """X5: bytes of one file that a job adds to its task."""
    artifacts_limit: int = 1024 * 1024 * 1024
    """X5: bytes of all files that one attempt adds; they stay until the task is forgotten."""
    artifacts: str = ""
    """Where the artifacts of a shared record lie, for all its machines: `file:///srv/artifacts`,
    `s3://bucket/folder`, or another address of fsspec. None: they stay where the task ran, as those
    of a home folder always do."""
    pooler: str = ""
    """The address of a pooler in transaction mode before the database of a shared record: all that
    is read goes over it, so that a program has few connections to the database itself."""
    retention_s: float = 30 * 86400.0
    """E12: finished tasks are kept this long."""
    max_size: int = 0
    """E12: bytes that the folders of all tasks may take on the disk before the oldest that have
    ended go; 0 for no limit. It is looked at once an hour."""
    delivery_limit_s: float = 30.0
    """X1: what a channel may take for one delivery: a receiver that needs longer should queue."""
    delivery_retry_s: float = 5.0
    """X1: how long the second try of a delivery waits; see `model.channels.FURTHER_TRIES`."""
    keeper_idle_s: float = 30.0
    """A keeper with nothing to do leaves after this; starting one takes about 0.2 s."""
    dead_after_s: float = 30.0
    """X2: a worker or an application of a shared record that was not heard of for so long is dead,
    and what it had is seen to."""
    cgroups: bool = True
    """Use a cgroup for each task where one can be made."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read `BACKBURNER_LOG_HEAD=65536` and the like; a value that is none is an error."""
        given: dict[str, int | float | bool | str] = {}
        for field in fields(cls):
            text = environment.get("BACKBURNER_" + field.name.upper())
            if text is None:
                continue
            if isinstance(field.default, str):
                given[field.name] = text
                continue
            try:
                number = float(text)
            except ValueError:
                number = -1.0
            if not math.isfinite(number) or number < 0:
                raise ValueError(
                    f"BACKBURNER_{field.name.upper()}={text!r} is not a number of 0 or more"
                )
            default = field.default
            given[field.name] = (
                bool(number)
                if isinstance(default, bool)
                else int(number)
                if isinstance(default, int)
                else number
            )
        return cls(**given)  # type: ignore[arg-type]  # the kinds follow the defaults above
