"""What a schedule starts: read from what a caller gives, once, when the schedule is made.

A command, a Python function and an importable tool become processes that the keeper starts; what
they need of the caller's surroundings is left for it. A tool that only lives in an application, and
an agent, wait for an application that has them.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from backburner.model.errors import UsageError
from backburner.model.limits import SPEC_MAX_BYTES, Settings
from backburner.model.redaction import redact_arguments
from backburner.model.states import Kind
from backburner.model.values import value
from backburner.work import python, shell
from backburner.work.assignment import Assignment
from backburner.work.process.wrapper import Launch, problem

if TYPE_CHECKING:
    from backburner.work.tools.tool import Tool

Given = str | Sequence[str] | Mapping[str, Any]
"""A command; or a mapping with one of `command`, `call`, `tool` and `ask`."""

_TAKES = {
    "command": {"cwd", "env"},
    "call": {"args", "cwd", "env"},
    "tool": {"args"},
    "ask": {"agent"},
}
"""What may stand beside each kind of work."""

_DEFAULT_AGENT = "default"
_HOW = 'give a command, or {"command": …}, {"call": …, "args": {…}}, {"tool": …} or {"ask": …}'


@value
class Work:
    """What the tasks of a schedule do."""

    kind: Kind
    shown: str
    """In one line, for the title where the caller gives none."""
    spec: dict[str, Any]
    launch: Launch | None = None
    """How the keeper starts it; None where an application has to carry it out."""


FindTool = Callable[[str], "Tool"]
"""The tool of a name. UsageError where there is none."""
FindAgent = Callable[[str, str], "Assignment | None"]
"""How the agent of a name is started with a prompt; None where it lives in an application.
UsageError where there is no such agent."""


def read(
    given: Given,
    settings: Settings,
    find_tool: FindTool,
    find_agent: FindAgent,
    *,
    shared: bool = False,
) -> Work:
    """What a caller gives, checked. UsageError where it cannot be started.

    In a ``shared`` record every tool waits for a machine that has it.
    """
    spec = dict(given) if isinstance(given, Mapping) else {"command": given}
    chosen = [name for name in _TAKES if name in spec]
    if len(chosen) != 1:
        said = " and ".join(chosen) if chosen else "none of them"
        raise UsageError(
            f"a schedule starts one of command, call, tool and ask, and this has {said}",
            remedy=_HOW,
        )
    name = chosen[0]
    if unknown := sorted(map(str, spec.keys() - _TAKES[name] - {name})):
        known = ", ".join(sorted(_TAKES[name]))
        raise UsageError(
            f"{', '.join(unknown)[:100]}: nothing that a {name} takes",
            remedy=f"beside {name} there may be: {known}",
        )
    match name:
        case "command":
            return _command(spec, settings)
        case "call":
            return _call(spec, settings)
        case "tool":
            return _tool(spec, settings, find_tool, shared=shared)
        case _:
            return _ask(spec, settings, find_agent)


def waits_for(kind: Kind, spec: Mapping[str, Any], *, shared: bool) -> str:
    """What a task that no keeper can start says of itself; in a ``shared`` record workers can."""
    what = f"tool {spec.get('tool')}" if kind is Kind.TOOL else f"agent {spec.get('agent')}"
    who = "a worker or application" if shared else "an application"
    return f"waits for {who} that has the {what}"


def _command(spec: Mapping[str, Any], settings: Settings) -> Work:
    command = spec["command"]
    if not isinstance(command, str):
        command = _words(command)
    return _process(
        shell.assignment(shell.ShellCommand(command, _folder(spec), _variables(spec)), settings)
    )


def _words(given: object) -> list[str]:
    words = list(cast("Sequence[object]", given)) if isinstance(given, list | tuple) else []
    if not words or not all(isinstance(word, str) for word in words):
        raise UsageError("a command is a text, or a list of words", remedy=_HOW)
    return cast("list[str]", words)


def _call(spec: Mapping[str, Any], settings: Settings) -> Work:
    reference = _text(spec, "call")
    arguments = _arguments(spec)
    _refuse_secrets(arguments, reference)
    call = python.PythonCall(reference, arguments, _folder(spec), _variables(spec))
    return _process(python.assignment(call, settings))


def _process(assignment: Assignment) -> Work:
    if (reason := problem(assignment.launch)) is not None:
        raise UsageError(f"it could not be started: {reason}")
    return Work(assignment.kind, assignment.shown, assignment.spec, assignment.launch)


def _tool(spec: Mapping[str, Any], settings: Settings, find: FindTool, *, shared: bool) -> Work:
    from backburner.work.tools.tool import refuse_in_background  # the keeper needs no tools

    tool = find(_text(spec, "tool"))
    refuse_in_background(tool)
    arguments = _arguments(spec)
    tool.validate(arguments)
    _refuse_secrets(arguments, tool.name)
    if tool.reference is not None and not shared:
        process = python.tool_assignment(
            tool.name,
            tool.reference,
            arguments,
            settings,
            cwd=os.getcwd(),
            readonly=tool.readonly,
            idempotent=tool.idempotent,
        )
        return Work(Kind.TOOL, tool.display_name, process.spec, process.launch)
    record = {
        "tool": tool.name,
        "arguments": arguments,
        "reference": None,
        "readonly": tool.readonly,
        "idempotent": tool.idempotent,
        "redacted": False,
        "log": [settings.log_head, settings.log_tail],
        "depth": 0,
    }
    return Work(Kind.TOOL, tool.display_name, record)


def _refuse_secrets(arguments: Mapping[str, Any], name: str) -> None:
    """A schedule lives on the disk for as long as it lives at all, and no secret does (D9)."""
    if redact_arguments(arguments)[1]:
        raise UsageError(
            f"the arguments of {name!r} hold secrets, which are kept nowhere until a schedule"
            " is due",
            remedy="let the function find them itself, in a file or in its environment",
        )


def _ask(spec: Mapping[str, Any], settings: Settings, find: FindAgent) -> Work:
    prompt = _text(spec, "ask")
    agent = _text({"agent": _DEFAULT_AGENT, **spec}, "agent")
    if len(prompt.encode(errors="surrogatepass")) > SPEC_MAX_BYTES:
        raise UsageError(f"the prompt is longer than {SPEC_MAX_BYTES // 1024} KiB")
    process = find(agent, prompt)
    if process is not None:
        return _process(process)
    record = {
        "agent": agent,
        "prompt": prompt,
        "log": [settings.log_head, settings.log_tail],
        "depth": 0,
        "keep_children": False,
    }
    return Work(Kind.AGENT, prompt, record)


def _text(spec: Mapping[str, Any], name: str) -> str:
    value = spec[name]
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{name} is a text that is not empty", remedy=_HOW)
    return value


def _arguments(spec: Mapping[str, Any]) -> dict[str, Any]:
    given: Any = spec.get("args")
    arguments: dict[str, Any] = {} if given is None else given
    python.check_arguments(arguments)
    return dict(arguments)


def _folder(spec: Mapping[str, Any]) -> str:
    given = spec.get("cwd")
    if given is None:
        return os.getcwd()
    if not isinstance(given, str | os.PathLike):
        raise UsageError("cwd is the path of a folder")
    return os.path.join(os.getcwd(), cast("str | os.PathLike[str]", given))


def _variables(spec: Mapping[str, Any]) -> dict[str, str]:
    given: Any = spec.get("env")
    variables: dict[str, str] = {}
    if isinstance(given, Mapping):
        variables = dict(cast("Mapping[str, str]", given))
    elif given is not None:
        raise UsageError("env gives variables by name", remedy='give {"NAME": "value"}')
    if not all(isinstance(word, str) for pair in variables.items() for word in pair):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("env gives texts by name", remedy='give {"NAME": "value"}')
    return variables
