"""Shell tasks: what is to be run, and what it inherits from its caller.

The command is part of the record. The caller's environment is not: see `handover`.
"""

import contextlib
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from backburner.model.allowance import UNLIMITED, Allowance
from backburner.model.errors import UsageError
from backburner.model.home import Home
from backburner.model.input import Input, WindowSize
from backburner.model.limits import SPEC_MAX_BYTES, Settings
from backburner.model.redaction import HIDDEN
from backburner.model.states import Kind
from backburner.model.task import Task
from backburner.model.values import value
from backburner.model.watching import NOTHING, Watching
from backburner.work.assignment import (
    Assignment,
    base_spec,
    inherited_environment,
    open_files,
    umask,
)
from backburner.work.log.bounds import LogBounds
from backburner.work.log.pattern import check_pattern
from backburner.work.process.wrapper import Launch, find_bash


@value
class ShellCommand:
    """One command: a line for a shell, or an argument vector."""

    command: str | Sequence[str]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the caller sets beside what it inherits."""
    separate_stderr: bool = False
    input: Input = Input.NONE
    size: WindowSize | None = None
    """Of its terminal; None: that of the caller's."""
    watching: Watching = NOTHING
    allowance: Allowance = UNLIMITED

    def __post_init__(self) -> None:
        words = [self.command] if isinstance(self.command, str) else list(self.command)
        given: list[object] = [*words, *self.env, *self.env.values()]  # by programs without types
        if not all(isinstance(each, str) for each in given):
            raise UsageError(
                "a command is a text or a list of texts, and so is what it is given",
                remedy='write numbers as texts: ["sleep", "3"]',
            )
        if not words or not words[0].strip():
            raise UsageError("the command is empty", remedy="give a command to run")
        if any("\0" in word for word in (*words, self.cwd, *self.env, *self.env.values())):
            raise UsageError("a command cannot contain a NUL character")
        if any(not name or "=" in name for name in self.env):
            raise UsageError(
                "the name of a variable is empty or contains =", remedy="use NAME=VALUE"
            )
        if self.input is Input.PTY and self.separate_stderr:
            raise UsageError(
                "a terminal shows standard output and error as one", remedy="leave one of them out"
            )
        if self.size is not None and self.input is not Input.PTY:
            raise UsageError("only a terminal has a size", remedy="ask for one with --pty")
        for pattern in self.watching.patterns:
            check_pattern(pattern)
        if sum(len(word.encode(errors="surrogatepass")) for word in words) > SPEC_MAX_BYTES:
            raise UsageError(
                f"the command is longer than {SPEC_MAX_BYTES // 1024} KiB",
                remedy="put it into a file and run that",
            )

    @property
    def shown(self) -> str:
        """The command as a person would type it."""
        return self.command if isinstance(self.command, str) else shlex.join(self.command)

    def argv(self) -> list[str]:
        """What is executed. bash where there is one: that is what people and models write for."""
        if isinstance(self.command, str):
            return [find_bash() or "/bin/sh", "-c", self.command]
        return list(self.command)

    def to_spec(self, settings: Settings) -> dict[str, Any]:
        """As the record keeps it; values under secret names are hidden."""
        return {
            "command": self.command if isinstance(self.command, str) else list(self.command),
            **base_spec(
                settings,
                cwd=self.cwd,
                env=self.env,
                separate_stderr=self.separate_stderr,
                allowance=self.allowance,
            ),
            **({"input": self.input.value} if self.input is not Input.NONE else {}),
            **({"size": str(self.size)} if self.size is not None else {}),
            **self.watching.to_spec(),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "ShellCommand":
        """The inverse of `to_spec`, for running it again; what was hidden must be given anew."""
        hidden = sorted(name for name, value in spec["env"].items() if value == HIDDEN)
        if hidden:
            raise UsageError(
                f"the value of {', '.join(hidden)} was not kept",
                remedy=f"start it anew with --env {hidden[0]}=…",
            )
        return cls(
            spec["command"],
            spec["cwd"],
            spec["env"],
            spec["separate_stderr"],
            input_of(spec),
            WindowSize.parse(spec["size"]) if "size" in spec else None,
            Watching.from_spec(spec),
            Allowance.of(spec),
        )


def input_of(spec: Mapping[str, Any]) -> Input:
    """What a recorded shell task reads from."""
    return Input(spec.get("input", Input.NONE))


def log_bounds(spec: Mapping[str, Any]) -> LogBounds:
    """How much of the output is kept."""
    head, tail = spec["log"]
    return LogBounds(head, tail)


def assignment(command: ShellCommand, settings: Settings) -> Assignment:
    """The command as a task."""
    return Assignment(
        Kind.SHELL, command.shown, command.to_spec(settings), launch_from_here(command)
    )


def launch_from_here(command: ShellCommand) -> Launch:
    """The command with what this process would hand on to a child of its own."""
    environment = inherited_environment()
    given = dict(command.env)
    size = WindowSize()
    if command.input is Input.PTY:
        size = command.size or _size_of_our_terminal() or size
        given.setdefault("TERM", environment.get("TERM") or "xterm-256color")
        for name in ("COLUMNS", "LINES"):  # of another terminal; programs believe these first
            environment.pop(name, None)
    return Launch(
        argv=command.argv(),
        cwd=command.cwd,
        environment=environment | given,
        given=given,
        umask=umask(),
        open_files=open_files(),
        separate_stderr=command.separate_stderr,
        input=command.input.value,
        size=[size.rows, size.columns],
    )


def _size_of_our_terminal() -> WindowSize | None:
    for fd in (0, 1, 2):
        with contextlib.suppress(OSError, UsageError):  # no terminal, or one that says 0 x 0
            columns, rows = os.get_terminal_size(fd)
            return WindowSize(columns, rows)
    return None


def job_environment(launch: Launch, home: Home, task: Task) -> dict[str, str]:
    """The caller's environment and what a job needs to take part."""
    one, every = task.spec.get("artifacts") or (None, None)
    limits = {"BACKBURNER_ARTIFACT_LIMIT": one, "BACKBURNER_ARTIFACTS_LIMIT": every}
    return {
        "PYTHONUNBUFFERED": "1",  # or prints would be seen at the end only
        **launch.environment,
        "BACKBURNER_TASK_ID": task.id,
        "BACKBURNER_ATTEMPT": str(task.attempt),
        # A program that is an agent has a session of its own, named after its task.
        "BACKBURNER_OWNER": task.owner,
        "BACKBURNER_SESSION": task.id if task.kind is Kind.AGENT else task.session,
        "BACKBURNER_HOME": str(home.root),
        "BACKBURNER_REPORT": home.attempt(task.id, task.attempt).report,
        **({"BACKBURNER_FOLDER": task.spec["folder"]} if task.spec.get("folder") else {}),
        **{name: str(value) for name, value in limits.items() if value is not None},
    }
