"""Shell tasks: what is to be run, and the hand-over from the caller to the keeper.

The command is part of the record. The caller's environment is not, because it holds secrets: it
travels in a file that only the owner can read and that is deleted at the start.
"""

import contextlib
import json
import os
import resource
import secrets
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backburner.model.errors import UsageError
from backburner.model.home import Home
from backburner.model.limits import SPEC_MAX_BYTES, Settings
from backburner.model.redaction import HIDDEN, is_secret
from backburner.work.log.bounds import LogBounds
from backburner.work.process.wrapper import Launch

_NOT_INHERITED = ("BACKBURNER_TASK_ID", "BACKBURNER_ATTEMPT")


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command: a line for a shell, or an argument vector."""

    command: str | Sequence[str]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the caller sets beside what it inherits."""
    separate_stderr: bool = False

    def __post_init__(self) -> None:
        words = [self.command] if isinstance(self.command, str) else list(self.command)
        if not words or not words[0].strip():
            raise UsageError("the command is empty", remedy="give a command to run")
        if any("\0" in word for word in (*words, self.cwd, *self.env, *self.env.values())):
            raise UsageError("a command cannot contain a NUL character")
        if any(not name or "=" in name for name in self.env):
            raise UsageError(
                "the name of a variable is empty or contains =", remedy="use NAME=VALUE"
            )
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
            return [shutil.which("bash") or "/bin/sh", "-c", self.command]
        return list(self.command)

    def to_spec(self, settings: Settings) -> dict[str, Any]:
        """As the record keeps it; values under secret names are hidden."""
        return {
            "command": self.command if isinstance(self.command, str) else list(self.command),
            "cwd": self.cwd,
            "env": {name: HIDDEN if is_secret(name) else value for name, value in self.env.items()},
            "separate_stderr": self.separate_stderr,
            "log": [settings.log_head, settings.log_tail],
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
        return cls(spec["command"], spec["cwd"], spec["env"], spec["separate_stderr"])


def shown_command(spec: Mapping[str, Any]) -> str:
    """The command of a recorded shell task as a person would type it."""
    command = spec.get("command", "")
    return command if isinstance(command, str) else shlex.join(command)


def log_bounds(spec: Mapping[str, Any]) -> LogBounds:
    """How much of the output is kept."""
    head, tail = spec["log"]
    return LogBounds(head, tail)


def launch_from_here(command: ShellCommand) -> Launch:
    """The command with what this process would hand on to a child of its own."""
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    return Launch(
        argv=command.argv(),
        cwd=command.cwd,
        environment={**inherited, **command.env},
        umask=_umask(),
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        separate_stderr=command.separate_stderr,
    )


def _umask() -> int:
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except OSError:
        pass
    mask = os.umask(0o077)  # elsewhere it can only be read by setting it
    os.umask(mask)
    return mask


def job_environment(launch: Launch, home: Home, session: str, task_id: str) -> dict[str, str]:
    """The caller's environment and what a job needs to take part."""
    return {
        "PYTHONUNBUFFERED": "1",  # or prints would be seen at the end only
        **launch.environment,
        "BACKBURNER_TASK_ID": task_id,
        "BACKBURNER_SESSION": session,
        "BACKBURNER_HOME": str(home.root),
    }


def hand_over(home: Home, task_id: str, launch: Launch) -> str:
    """Leave the launch for the keeper, readable by the owner only. Answers its name."""
    name = secrets.token_hex(6)
    document = {
        "argv": list(launch.argv),
        "cwd": launch.cwd,
        "environment": dict(launch.environment),
        "umask": launch.umask,
        "open_files": launch.open_files,
        "separate_stderr": launch.separate_stderr,
    }
    path = home.launch(task_id, name)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileNotFoundError:
        os.makedirs(home.launches, mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(fd, "wb", buffering=0) as file:
            file.write(json.dumps(document).encode("ascii"))
    except BaseException:
        os.unlink(path)
        raise
    return name


def take_over(home: Home, task_id: str, name: str) -> Launch:
    """Read what was handed over. OSError, ValueError or TypeError where it is gone or broken."""
    with open(home.launch(task_id, name), encoding="ascii") as file:
        document = json.load(file)
    return Launch(**document)


def discard_hand_over(home: Home, task_id: str, name: str | None) -> None:
    """The start was made, or never will be: the environment goes."""
    if name is not None:
        with contextlib.suppress(OSError):
            os.unlink(home.launch(task_id, name))
