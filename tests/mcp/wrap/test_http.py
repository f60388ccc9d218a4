"""A wrap before a server that is reached over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from tests.mcp.wrap.conftest import Connect, Remote, appear, result_of

pytestmark = pytest.mark.slow

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


@ERAS
async def test_x6_a_url_is_wrapped_as_a_command_is(
    connect: Connect, home: Path, remote: Remote, mode: str, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    async with connect("http", remote.url, mode=mode, budget=5) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"total": 3}
        parked: Any = (await client.call_tool("until", {"path": str(flag)})).structured_content
        appear(flag)
        read: Any = (await result_of(home, client, parked["background_id"])).structured_content
        assert read["result"] == {"result": "found it"}


@ERAS
async def test_x6_a_remote_server_that_dies_is_found_again(
    connect: Connect, remote: Remote, mode: str
) -> None:
    async with connect("http", remote.url, mode=mode) as client:
        await client.call_tool("echo", {"text": "one"})
        remote.end()
        gone = await client.call_tool("echo", {"text": "two"})
        assert gone.is_error
        assert "the wrapped server" in str(gone.content)
        remote.start()
        await _until_it_works(client)


async def _until_it_works(client: Any) -> None:
    """The first call may still meet the session of the dead one."""
    for _ in range(3):
        answer = await client.call_tool("echo", {"text": "three"})
        if not answer.is_error:
            assert answer.structured_content == {"result": "three"}
            return
        assert "the wrapped server" in str(answer.content)
    pytest.fail("it was not found again")
