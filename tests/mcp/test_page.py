"""docs/mcp.md: what it tells people to write is what works."""

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import StdioServerParameters

from backburner import Backburner
from backburner.mcp import session_name
from tests.mcp.client import MODERN, REPOSITORY, connected, program, text_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_session_from_outside")]

PAGE = (REPOSITORY / "docs" / "mcp.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


async def test_x6_one_entry_in_the_settings_is_enough(home: Path, tmp_path: Path) -> None:
    """Start a build, close the agent, open it again, be told how the build ended."""
    entry: dict[str, Any] = json.loads(block("json"))["mcpServers"]["backburner"]
    command = shutil.which(str(entry["command"]), path=str(Path(sys.executable).parent))
    assert command is not None
    agent = StdioServerParameters(
        command=command, args=entry["args"], env=dict(os.environ), cwd=tmp_path
    )
    async with connected(agent, "2025-11-25", name="claude-code") as client:
        build = {"command": "echo compiling; exit 2", "title": "build"}
        started = await client.call_tool("background_run", build)
    task = cast("dict[str, Any]", started.structured_content)["id"]
    async with Backburner.open(home) as bb:
        session = bb.session(session_name("claude-code", str(tmp_path)))
        await (await session.task(task)).wait(30)
    async with connected(agent, "2025-11-25", name="claude-code") as client:
        told = await client.call_tool("background_list", {})
        assert f"[failed] build ({task}) failed: exit code 2" in text_of(told)


async def test_x6_the_example_serves_a_tool_of_its_own(home: Path, tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text(block("python"), encoding="utf-8")
    async with connected(program(str(example), cwd=tmp_path), MODERN) as client:
        crawled = await client.call_tool("crawl", {"url": "about:blank"})
        assert crawled.structured_content == {"url": "about:blank"}
