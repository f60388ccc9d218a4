"""A task that is a process, of whatever kind: what the record says of it, how it is started.

Shell commands, Python functions, importable tools and command-line agents each make one; from there
on they are the same to the keeper. What must not be in the record (the environment, arguments as
they were given) is in the launch alone, which goes through `handover`.
"""

import os
import resource
from collections.abc import Mapping, Sequence
from typing import Any

from backburner.model.allowance import UNLIMITED, Allowance
from backburner.model.limits import Settings
from backburner.model.redaction import HIDDEN, is_secret
from backburner.model.states import Kind
from backburner.model.values import value
from backburner.work.process.identity import read_proc
from backburner.work.process.wrapper import Launch

_NOT_INHERITED = (
    "BACKBURNER_TASK_ID",
    "BACKBURNER_ATTEMPT",
    "BACKBURNER_REPORT",
    "BACKBURNER_SECRET",
)


@value
class Assignment:
    """What the keeper is to carry out as a process."""

    kind: Kind
    shown: str
    """In one line, for its title where the caller gives none."""
    spec: dict[str, Any]
    """As the record keeps it: no secrets."""
    launch: Launch


def base_spec(
    settings: Settings,
    *,
    cwd: str,
    env: Mapping[str, str],
    separate_stderr: bool,
    allowance: Allowance = UNLIMITED,
) -> dict[str, Any]:
    """What the record keeps of every process; values under secret names are hidden."""
    return {
        "cwd": cwd,
        "env": {name: HIDDEN if is_secret(name) else value for name, value in env.items()},
        "separate_stderr": separate_stderr,
        "log": [settings.log_head, settings.log_tail],
        "artifacts": [settings.artifact_limit, settings.artifacts_limit],
        **({"allowance": given} if (given := allowance.to_spec()) else {}),
    }


def inherited_environment() -> dict[str, str]:
    """What this process would hand on to a child, without what makes it a part of its own task, and

    without the key that seals what all machines share.
    """
    environment = dict(os.environ)
    for name in _NOT_INHERITED:
        environment.pop(name, None)
    return environment


def launch_from_here(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    separate_stderr: bool,
    stdin_text: str | None = None,
) -> Launch:
    """A command with what this process would hand on to a child of its own.

    It reads ``stdin_text`` from its standard input, which is nowhere in a file or a command line.
    """
    return Launch(
        argv=list(argv),
        cwd=cwd,
        environment=inherited_environment() | dict(env),
        given=dict(env),
        umask=umask(),
        open_files=open_files(),
        separate_stderr=separate_stderr,
        stdin_text=stdin_text,
    )


def open_files() -> int:
    """How many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def umask() -> int:
    """The umask of this process."""
    _, found, rest = read_proc("self", "status").partition(b"\nUmask:")
    if found:
        return int(rest.split(maxsplit=1)[0], 8)
    mask = os.umask(0o077)  # elsewhere it can only be read by setting it
    os.umask(mask)
    return mask
