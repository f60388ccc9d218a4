"""What a task does, as a person would write it: its command, call or prompt, from the record."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from backburner.model.states import Kind


def shown_work(spec: Mapping[str, Any]) -> str:
    """In one text, whatever kind of work it is; secrets are hidden in the record already."""
    if "call" in spec:
        return shown_call(spec["call"], spec.get("arguments", {}))
    if "tool" in spec:
        return shown_call(spec["tool"], spec.get("arguments", {}))
    if "agent" in spec:
        return spec.get("prompt", "")
    return shown_command(spec)


def shown_command(spec: Mapping[str, Any]) -> str:
    """The command of a recorded shell task as a person would type it."""
    command = spec.get("command", "")
    return command if isinstance(command, str) else shlex.join(command)


def shown_call(name: str, arguments: Mapping[str, Any]) -> str:
    """`module:function(n=3, text="x")`"""
    given = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return f"{name}({', '.join(given)})"


WORK_IS_CALLED = {
    Kind.SHELL: "command",
    Kind.PYTHON: "call",
    Kind.TOOL: "tool",
    Kind.AGENT: "prompt",
}
"""What people call the work of each kind."""
