"""Python tasks: a function that can be imported, called in a process of its own.

The reference and the redacted arguments are part of the record. The arguments as they were given go
through `handover` to the child's standard input, and are nowhere else.
"""

import json
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from backburner.model.allowance import UNLIMITED, Allowance
from backburner.model.errors import UsageError
from backburner.model.limits import SPEC_MAX_BYTES, Settings
from backburner.model.redaction import HIDDEN, redact_arguments
from backburner.model.states import Kind
from backburner.model.values import value
from backburner.work.assignment import Assignment, base_spec, launch_from_here
from backburner.work.child.finding import check_reference
from backburner.work.child.request import Request, command, path_of_this_process
from backburner.work.process.wrapper import Launch
from backburner.work.result import NESTING_MAX, is_too_deep
from backburner.work.shown import shown_call


@value
class PythonCall:
    """One call of a function."""

    reference: str
    """package.module:function"""
    arguments: Mapping[str, Any]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the caller sets beside what it inherits."""
    allowance: Allowance = UNLIMITED
    path: tuple[str, ...] = ()
    """Where modules are looked for beside the places where this process does."""

    def __post_init__(self) -> None:
        check_reference(self.reference)
        check_arguments(self.arguments)
        check_environment(self.cwd, self.env)

    @property
    def shown(self) -> str:
        """The call as a person would write it."""
        return shown_call(self.reference, redact_arguments(self.arguments)[0])

    def to_spec(self, settings: Settings) -> dict[str, Any]:
        """As the record keeps it; what stands under secret names is hidden."""
        arguments, redacted = redact_arguments(self.arguments)
        return {
            "call": self.reference,
            "arguments": arguments,
            "redacted": redacted,
            **base_spec(
                settings,
                cwd=self.cwd,
                env=self.env,
                separate_stderr=True,
                allowance=self.allowance,
            ),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "PythonCall":
        """The inverse of `to_spec`, for calling it again; what was hidden must be given anew."""
        hidden = sorted(name for name, value in spec["env"].items() if value == HIDDEN)
        if spec["redacted"] or hidden:
            raise UsageError(
                "what was secret about this call was not kept",
                remedy=f"call {spec['call']} anew, with all of its arguments",
            )
        cwd = spec["cwd"]  # whoever calls it again may be a program with another path
        allowance = Allowance.of(spec)
        return cls(spec["call"], spec["arguments"], cwd, spec["env"], allowance, (cwd,))


def assignment(call: PythonCall, settings: Settings) -> Assignment:
    """The call as a task."""
    path = [*path_of_this_process(), *call.path]
    request = Request("function", call.reference, dict(call.arguments), path)
    launch = launch_from_here(
        command(call.reference),
        cwd=call.cwd,
        env=call.env,
        separate_stderr=True,
        stdin_text=request.to_text(),
    )
    return Assignment(Kind.PYTHON, call.shown, call.to_spec(settings), launch)


def tool_assignment(
    name: str,
    reference: str,
    arguments: Mapping[str, Any],
    settings: Settings,
    *,
    cwd: str,
    readonly: bool,
    idempotent: bool,
    wake: str = "on_terminal",
    depth: int = 0,
) -> Assignment:
    """A call of an importable tool as a task that the keeper can start."""
    check_arguments(arguments)
    kept, redacted = redact_arguments(arguments)
    spec = {
        "tool": name,
        "arguments": kept,
        "reference": reference,
        "readonly": readonly,
        "idempotent": idempotent,
        "redacted": redacted,
        "wake": wake,
        "depth": depth,
        **base_spec(settings, cwd=cwd, env={}, separate_stderr=False),
    }
    request = Request("tool", reference, dict(arguments), path_of_this_process())
    return Assignment(Kind.TOOL, shown_call(name, kept), spec, _launch(request, cwd))


def worker_launch(cwd: str) -> Launch:
    """How tools of this application are started by the keeper, when it has died: see `with_request`

    It names no tool, and has no arguments: those are in the record of each task.
    """
    return _launch(Request("tool", "", {}, path_of_this_process()), cwd)


def with_request(launch: Launch, kind: Kind, spec: Mapping[str, Any]) -> Launch:
    """The launch itself, or that of a worker made one for this task of it."""
    if kind is not Kind.TOOL or launch.stdin_text is None:
        return launch
    request = Request.from_text(launch.stdin_text)
    if request.reference:
        return launch
    given = replace(request, reference=spec["reference"], arguments=spec["arguments"])
    return replace(launch, argv=[*launch.argv[:-1], given.reference], stdin_text=given.to_text())


def _launch(request: Request, cwd: str) -> Launch:
    return launch_from_here(
        command(request.reference),
        cwd=cwd,
        env={},
        separate_stderr=False,
        stdin_text=request.to_text(),
    )


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """UsageError where they cannot be handed to another process as they are."""
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("arguments are given by name", remedy='give {"name": value}')
    try:
        text = json.dumps(arguments, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"the arguments are no JSON: {error}",
            remedy="give texts, numbers, booleans, None, lists and dictionaries",
        ) from None
    if is_too_deep(arguments):
        raise UsageError(
            f"the arguments are nested deeper than {NESTING_MAX} levels",
            remedy="put them into a file, and give its path",
        )
    if len(text) > SPEC_MAX_BYTES:
        raise UsageError(
            f"the arguments are longer than {SPEC_MAX_BYTES // 1024} KiB",
            remedy="put them into a file, and give its path",
        )


def check_environment(cwd: str, env: Mapping[str, str]) -> None:
    """UsageError where no process can be started in this."""
    if any("\0" in text for text in (cwd, *env, *env.values())):
        raise UsageError("neither a folder nor a variable can contain a NUL character")
    if any(not name or "=" in name for name in env):
        raise UsageError("the name of a variable is empty or contains =", remedy="use NAME=VALUE")
