"""X6: a wrapped server is a stranger: it is not told how to get to the record."""

import os
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.mcp.client import MCP
from tests.mcp.wrap.conftest import words
from tests.nursery import nursery

OURS = {"BACKBURNER_HOME", "BACKBURNER_DATABASE", "BACKBURNER_SECRET", "PGPASSWORD"}


@pytest.mark.parametrize("given", ["home", "option", "folder"])
async def test_x6_a_wrapped_server_is_not_given_the_way_to_the_record(
    home: Path, address: str, given: str
) -> None:
    environment = {**os.environ, "PGPASSWORD": "hunter2", "BACKBURNER_SECRET": "x" * 40}
    environment |= {"XDG_STATE_HOME": str(home), "BACKBURNER_HOME": str(home)}
    option: list[str] = []
    if given == "home":
        environment |= {"BACKBURNER_HOME": address, "BACKBURNER_DATABASE": address}
    elif given == "option":
        option = ["--home", address]
    python, *rest = nursery(*MCP).command("backburner.mcp.wrap", *option, *words())
    parameters = StdioServerParameters(command=python, args=rest, env=environment)
    async with Client(parameters, mode="legacy") as client:
        answer = (await client.call_tool("variables", {})).structured_content
    assert answer is not None
    assert "PATH" in answer["result"]
    # In a folder, a password of libpq's is for a database of the server's own.
    kept = {
        "home": set[str](),
        "option": {"BACKBURNER_HOME"},
        "folder": {"BACKBURNER_HOME", "PGPASSWORD"},
    }
    assert OURS.intersection(answer["result"]) == kept[given]
