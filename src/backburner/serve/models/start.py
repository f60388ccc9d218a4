"""What starts a task, stops it and talks to it."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from backburner.model.limits import ANSWER_MAX_BYTES, DEFAULT_GRACE_S, DEFAULT_MAX_RUNTIME_S
from backburner.model.order import HIGHEST, LOWEST
from backburner.serve.models.base import Document, Request

Text = Annotated[str, StringConstraints(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=100 * 365 * 86400)]
Word = Annotated[str, StringConstraints(max_length=200)]


class _Start(Request):
    title: Annotated[str, StringConstraints(max_length=1000)] | None = None
    max_runtime_s: Seconds | None = Field(
        DEFAULT_MAX_RUNTIME_S, description="It is ended after so many seconds; null for never."
    )
    priority: int = Field(0, ge=LOWEST, le=HIGHEST, description="Of what waits the highest first.")


class _StartProcess(_Start):
    cwd: str | None = Field(None, description="Its folder; that of the server unless given.")
    env: dict[str, str] = Field(default={}, description="Variables beside those of the server.")
    after: list[Word] = Field(default=[], max_length=100, description="Tasks that it comes after.")
    after_failure: bool = Field(False, description="Start also where one of those has failed.")
    retries: int = Field(0, ge=0, le=100)
    queue: Word | None = None
    nice: int | None = Field(None, ge=-20, le=19)
    memory: int | None = Field(None, gt=0, le=2**53, description="Bytes.")
    cpu_time: Seconds | None = None


class StartShell(_StartProcess):
    """Run a command."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"kind": "shell", "command": "echo done", "title": "hello"}]
        }
    )

    kind: Literal["shell"]
    command: Text | Annotated[list[str], Field(min_length=1, max_length=10_000)] = Field(
        description="A line for a shell, or a list of words."
    )
    separate_stderr: bool = False
    stdin: bool = Field(False, description="It can be sent input.")
    pty: bool = Field(False, description="It has a terminal.")
    ready_output: Text | None = None
    ready_port: int | None = Field(None, ge=1, le=65535)
    ready_file: Text | None = None
    ready_http: Text | None = None
    match: Text | None = Field(None, description="Tell the session of lines that match.")
    silence: Seconds | None = Field(None, description="Tell it of so long without output.")


class StartPython(_StartProcess):
    """Call a function in a process of its own."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"kind": "python", "call": "math:floor", "arguments": {}}]}
    )

    kind: Literal["python"]
    call: Text = Field(description="`package.module:function`, which the server can import.")
    arguments: dict[str, Any] = Field(default={})


class StartTool(_Start):
    """Run a registered tool in the background."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"kind": "tool", "tool": "web_fetch", "arguments": {"url": "https://example.com"}}
            ]
        }
    )

    kind: Literal["tool"]
    tool: Text
    arguments: dict[str, Any] = Field(default={})
    signal_on_completion: bool = True


class StartAgent(_Start):
    """Ask a sub-agent."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"kind": "agent", "prompt": "Summarise the release notes"}]}
    )

    kind: Literal["agent"]
    prompt: Text
    agent: Text = "default"
    model: Text | None = None


Start = Annotated[StartShell | StartPython | StartTool | StartAgent, Field(discriminator="kind")]
"""What is to be started."""


class Stop(Request):
    """End a task and everything it has started."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"force": False, "grace_s": 5}]})

    force: bool = Field(False, description="Kill at once.")
    grace_s: float = Field(
        DEFAULT_GRACE_S, ge=0, le=86400, description="Seconds between asking and killing."
    )


class Send(Request):
    """Text for a task: the answer to its question, else input, else a message."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "yes"}]})

    text: Annotated[str, StringConstraints(max_length=ANSWER_MAX_BYTES)] | None = None
    question: Word | None = Field(None, description="Answer this one, and nothing else.")
    raw: bool = Field(False, description="Input without a line break.")
    eof: bool = Field(False, description="Its input has come to its end, instead of a text.")


class Sent(Document):
    """What became of a text."""

    question: str | None
