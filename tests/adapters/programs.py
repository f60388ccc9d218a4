"""Running the example programs against a model on this machine.

The model is a script that behaves as a model does: it starts a build, goes on, and when it has
been told of the end it reads the outcome. It goes by what it is sent, whatever the order.
"""

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from tests.anthropic_server import KEY, anthropic_server
from tests.conftest import REPOSITORY
from tests.openai_server import Asked, Calls, Says, openai_server

EXAMPLES = REPOSITORY / "examples"
PYTHON = REPOSITORY / ".adapters-venv" / "bin" / "python"

MAKEFILE = "build:\n\t@sleep 1\n\t@echo built 12 files\n"

Model = Callable[[Asked], Says | Calls]


@dataclass(frozen=True)
class Framework:
    """A framework that there is an adapter for."""

    program: str
    wire: str
    """Whose server it talks to: openai, or anthropic."""


FRAMEWORKS = (
    Framework("openai_agents_sdk", "openai"),
    Framework("pydantic_ai_agent", "openai"),
    Framework("langgraph_agent", "openai"),
    Framework("anthropic_tool_runner", "anthropic"),
    Framework("claude_agent_client", "anthropic"),
)


def builder(asked: Asked) -> Says | Calls:
    """Builds in the background."""
    said = conversation(asked)
    run = offered(asked, "background_run")
    if run is None:
        wanted = "select:mcp__backburner__background_run,mcp__backburner__background_output"
        return Calls.of("ToolSearch", query=wanted, max_results=2)
    if "built 12 files" in said:
        return Says("The build has finished: it built 12 files.")
    if end := re.search(r"build \((bg_\w+)\) finished", said):
        return Calls.of(offered(asked, "background_output") or "", id=end[1])
    if "Started bg_" not in said:
        return Calls.of(run, command="make", title="build")
    if meanwhile := offered(asked, "write_paragraph"):
        return Calls.of(meanwhile)
    return Says("The build is running. I shall be told when it ends.")


def conversation(asked: Asked) -> str:
    """Everything that was said, as one text."""
    return json.dumps(asked.body.get("messages", asked.body.get("input")))


def offered(asked: Asked, name: str) -> str | None:
    """What the model calls a tool of that name, which a framework may have given a prefix."""
    return next((each for each in asked.tools if each.split("__")[-1] == name), None)


@contextlib.contextmanager
def model_server(wire: str, model: Model) -> Generator[dict[str, str]]:
    """A server with this model: the variables that send a client there."""
    if wire == "openai":
        with openai_server(model) as server:
            yield {
                "OPENAI_BASE_URL": server.url,
                "OPENAI_API_KEY": "sk-of-a-test",
                "OPENAI_AGENTS_DISABLE_TRACING": "1",
            }
    else:
        with anthropic_server(model) as url:
            yield {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": KEY,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            }


def run_program(
    path: Path, framework: Framework, folder: Path, model: Model, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run it in a folder with a Makefile; nothing of the developer's own settings is there."""
    (folder / "Makefile").write_text(MAKEFILE)
    foreign = ("OPENAI_", "ANTHROPIC_", "CLAUDE", "LANG", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    with model_server(framework.wire, model) as address:
        return subprocess.run(
            [str(PYTHON), str(path), *arguments],
            env={**kept, "HOME": str(folder), "LANG": "C.UTF-8", **address},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
