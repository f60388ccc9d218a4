"""The walkthroughs of docs/mcp.md and docs/wrap.md, run as they are written.

The client of the `mcp` package is the coding agent. What takes minutes on the pages takes seconds
here: nothing else of them is changed.
"""

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import StdioServerParameters

from backburner import Backburner
from backburner.mcp import session_name
from tests.mcp.client import REPOSITORY, connected, text_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_session_from_outside")]

PROGRAMS = str(Path(sys.executable).parent)
AGENT = "claude-code"
LATER = "2025-11-25"


def section(page: str, title: str) -> str:
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    return re.split(r"^## ", text.split(f"## {title}\n", 1)[1], flags=re.MULTILINE)[0]


def blocks(text: str, language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found
    return found


def agent(settings: str, folder: Path) -> StdioServerParameters:
    """The one server of an agent's settings, as an agent would start it in a folder."""
    entry: dict[str, Any]
    [entry] = json.loads(settings)["mcpServers"].values()
    env = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    command = shutil.which(str(entry["command"]), path=PROGRAMS)
    assert command is not None
    return StdioServerParameters(command=command, args=entry["args"], env=env, cwd=folder)


async def called(client: Any, call: str) -> Any:
    made = json.loads(call)
    return await client.call_tool(made["name"], made["arguments"])


def told(answer: Any, line: str, task: str) -> bool:
    """Whether an answer says a line of the page, but for how long it took."""
    said = line.strip().replace("bg_…", task).partition(" after ")[0].partition("30 s")[0]
    return said in text_of(answer)


async def ended(home: Path, folder: Path, task: str) -> None:
    async with Backburner.open(home) as bb:
        await (await bb.session(session_name(AGENT, str(folder))).task(task)).wait(60)


async def test_x6_a_build_outlives_its_agent_and_the_next_one_is_told(
    home: Path, tmp_path: Path
) -> None:
    page = (REPOSITORY / "docs" / "mcp.md").read_text(encoding="utf-8")
    text = section("mcp.md", "A build that outlives its agent")
    start, anything = blocks(text.replace("sleep 300", "sleep 1"), "json")
    to = agent(blocks(page, "json")[0], tmp_path)
    async with connected(to, LATER, name=AGENT) as client:
        task: str = (await called(client, start)).structured_content["id"]
    [shell] = blocks(text, "sh")
    program, *words = shlex.split(shell)
    seen = await anyio.run_process([f"{PROGRAMS}/{program}", *words, "--json"])
    assert task in seen.stdout.decode()
    await ended(home, tmp_path, task)
    async with connected(to, LATER, name=AGENT) as client:
        answer = await called(client, anything)
        assert told(answer, blocks(text, "text")[0], task)
        assert not told(await called(client, anything), "[completed] build", task)


async def test_x6_a_call_of_five_minutes_is_parked_at_thirty_seconds(
    home: Path, tmp_path: Path
) -> None:
    text = section("wrap.md", "A call of five minutes")
    parked, completed = blocks(text, "text")
    text = text.replace('"30s"', '"500ms"').replace('"seconds": 300', '"seconds": 2')
    (tmp_path / "slow.py").write_text(blocks(text, "python")[0], encoding="utf-8")
    settings, crawl, read = blocks(text, "json")
    to = agent(settings, tmp_path)
    async with connected(to, LATER, name=AGENT) as client:
        answer = await called(client, crawl)
        task: str = answer.structured_content["background_id"]
        assert told(answer, parked, task)
    await ended(home, tmp_path, task)
    async with connected(to, LATER, name=AGENT) as client:
        answer = await client.call_tool("crawl", {"seconds": 0})
        assert told(answer, completed, task)
        answer = await called(client, read.replace("bg_…", task))
        assert answer.structured_content["result"] == {"result": "42 pages"}
