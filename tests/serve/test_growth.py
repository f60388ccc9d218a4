"""A reader of a task is told that its output has grown, when it wants to."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.serve.client import Api, Streamed

pytestmark = pytest.mark.slow


async def until_cursor(stream: AsyncIterator[Streamed], cursor: str) -> list[Streamed]:
    """What comes up to the word that the output is so far."""
    seen: list[Streamed] = []
    async with asyncio.timeout(60):
        async for each in stream:
            seen.append(each)
            if each.event == "output" and each.data["cursor"] == cursor:
                return seen
    raise AssertionError(f"the stream ended before {cursor}: {seen}")


@pytest.mark.parametrize("apart", [False, True], ids=["one log", "two logs"])
async def test_output_is_told_of_as_it_grows(api: Api, tmp_path: Path, *, apart: bool) -> None:
    gate = tmp_path / "gate"
    line = f"echo one; until [ -e {gate} ]; do sleep 0.05; done; echo three >&2; exec sleep 600"
    task = await api.backburner.session("chat").run(line, separate_stderr=apart)
    first, second = ("1.4.0", "1.4.6") if apart else ("1.4", "1.10")
    async with api.stream(f"/v1/tasks/{task.id}/events?output=true") as stream:
        seen = await until_cursor(stream, first)
        gate.touch()
        seen += await until_cursor(stream, second)
        # Whoever comes later is told at once how far it is.
        async with api.stream(f"/v1/tasks/{task.id}/events?output=true") as later:
            await until_cursor(later, second)
        await task.stop(force=True)
        async with asyncio.timeout(60):
            seen += [each async for each in stream]
    told = [each for each in seen if each.event == "output"]
    assert [each.data["cursor"] for each in told].count(second) == 1
    assert told[-1].data["total"] == 10
    assert {each.id for each in told} <= {None, *(each.id for each in seen)}
    assert seen[-1].event == "finished"


async def test_who_does_not_ask_is_not_told(api: Api) -> None:
    task = await api.backburner.session("chat").run("echo one")
    await task.wait(60)
    async with api.stream(f"/v1/tasks/{task.id}/events") as stream, asyncio.timeout(60):
        kinds = [each.event async for each in stream]
    assert "output" not in kinds
    assert kinds[-1] == "finished"
