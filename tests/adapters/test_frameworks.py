"""X7: what only one framework has: data beside a text, hints, the refusal to run in a thread."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.adapters.programs import PYTHON

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("frameworks")]

LANGCHAIN = """
import asyncio, json
from backburner import Backburner
from backburner.adapters import langchain

async def main():
    async with Backburner.open() as bb:
        tools = {each.name: each for each in langchain.tools(bb.session("test"))}
        call = {"type": "tool_call", "id": "1", "name": "background_list", "args": {}}
        listed = await tools["background_list"].ainvoke(call)
        call = {"type": "tool_call", "id": "2", "name": "background_stop", "args": {"id": "bg_x"}}
        stopped = await tools["background_stop"].ainvoke(call)
        try:
            tools["background_list"].invoke({})
        except NotImplementedError as error:
            refused = str(error)
    said = [listed.status, listed.content, listed.artifact, stopped.status, refused]
    print(json.dumps(said))

asyncio.run(main())
"""

CLAUDE = """
import asyncio, json
from backburner import Backburner
from backburner.adapters import claude_agent

async def main():
    async with Backburner.open() as bb:
        tools = {each.name: each for each in claude_agent.tools(bb.session("test"))}
        hints = {
            name: each.annotations.model_dump(mode="json", by_alias=True, exclude_none=True)
            for name, each in tools.items()
        }
        gone = await tools["background_stop"].handler({"id": "bg_x"})
    print(json.dumps([hints, gone["is_error"]]))

asyncio.run(main())
"""


def said_by(program: str) -> object:
    run = subprocess.run([str(PYTHON), "-c", program], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    return json.loads(run.stdout)


def test_x7_a_message_of_langchain_has_the_data_as_its_artifact(home: Path) -> None:
    assert said_by(LANGCHAIN) == [
        "success",
        "No background tasks in this session.",
        {"tasks": []},
        "error",
        "background_list is asynchronous: use ainvoke",
    ]


def test_x7_claude_knows_what_reads_and_what_destroys(home: Path) -> None:
    hints, failed = said_by(CLAUDE)  # type: ignore[misc]
    assert hints["background_list"]["readOnlyHint"] is True
    assert hints["background_stop"]["destructiveHint"] is True
    assert hints["background_run"]["readOnlyHint"] is False
    assert failed is True
