"""X2, E11: applications whose database is away while they close, change, or end what they had."""

import asyncio
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backburner import AgentRequest, Backburner, Context, State, StoreAway, Task
from backburner.model.errors import StoreClosed
from backburner.model.states import ErrorKind
from backburner.runtime.runs import finishing, letting_go
from backburner.store.postgres import reader, writer
from backburner.store.postgres.node import NodeStore
from tests.postgres_server import Server
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]

SOON = "3"
"""Until a machine that is silent is taken for dead."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look and each change is given up soon."""
    for module in (reader, writer):
        monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    monkeypatch.setattr(letting_go, "_LETTING_GO_S", 2.0)
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", SOON)


@pytest.mark.parametrize("away", ["before", "between"])
async def test_e11_x2_what_an_application_had_that_closes_in_an_outage_others_see_to(
    home: Path, own_server: Server, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    """Its process goes on, and says no more that it lives. Also where the database is there for its

    first look, and gone for what that leads to.
    """
    address = own_server.create()
    async with Backburner.open(address) as others:
        closing = Backburner.open(address)

        @closing.tool(background=True)
        async def hold() -> None:
            await asyncio.Event().wait()

        async with closing:
            task = await closing.session("chat").spawn("hold")
            lose = partial(own_server.stop, signal.SIGQUIT)
            if away == "before":
                await asyncio.to_thread(lose)
            else:
                get, rest = NodeStore.get, iter([lose])

                async def get_and_lose(*given: Any) -> Any:
                    found = await get(*given)
                    await asyncio.to_thread(next(rest, lambda: None))
                    return found

                monkeypatch.setattr(NodeStore, "get", get_and_lose)
        own_server.start()
        task = await (await others.session("chat").task(task.id)).wait(60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED
        assert "was not heard of" in task.error.message


async def test_x10_x2_a_tool_that_was_registered_in_an_outage_runs_after_it(
    home: Path, own_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """It is asked for by others, so its jobs have to be fetched as well."""
    address = own_server.create()
    async with Backburner.open(address) as has_it, Backburner.open(address) as asks:

        @has_it.tool(background=True)
        async def first() -> str:
            return "first"

        await has_it.runs.begin()
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)

        @has_it.tool(background=True)
        async def second() -> str:
            return "second"

        await wait_until_async(lambda: "is not on record" in caplog.text)
        own_server.start()
        await wait_until_async(lambda: _is_offered(asks, "second"))
        session = asks.session("chat")
        tasks = [await session.spawn(name) for name in ("first", "second")]
        assert [(await task.wait(60)).result for task in tasks] == ["first", "second"]


async def _is_offered(asks: Backburner, name: str) -> bool:
    try:
        return name in [tool.name for tool in await asks.known_tools()]
    except StoreAway:
        return False


class Starter:
    """An agent that starts jobs in its session, and ends."""

    def __init__(self) -> None:
        self.children: list[Task] = []

    async def run(self, request: AgentRequest, context: Context) -> str:
        self.children = [await request.session.run("true") for _ in range(2)]
        return "done"


async def test_e11_x2_children_end_with_their_agent_though_the_database_goes_away_just_then(
    home: Path, own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", "3600")  # nobody else looks
    address = own_server.create()
    finish, newest, gave_up = NodeStore.finish, NodeStore.newest, asyncio.Event()

    async def finish_and_lose(*given: Any, **more: Any) -> Any:
        ended = await finish(*given, **more)
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        return ended

    async def look(*given: Any, **more: Any) -> Any:
        try:
            return await newest(*given, **more)
        except StoreAway:
            gave_up.set()
            raise

    monkeypatch.setattr(NodeStore, "finish", finish_and_lose)
    monkeypatch.setattr(NodeStore, "newest", look)
    bb, starter = Backburner.open(address), Starter()
    bb.agent("starter", starter)
    async with bb:
        await bb.session("chat").ask("go", agent="starter")
        await gave_up.wait()
        own_server.start()
        for child in starter.children:
            assert (await child.wait(60)).state is State.CANCELED


async def test_e11_d8_what_an_agent_has_left_others_end_though_its_machine_has_lost_nothing_else(
    home: Path, own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went between the end of the agent and that of its children: no heartbeat tells of it."""
    address = own_server.create()

    async def gone(*_: object) -> None:
        raise StoreClosed("the record is closed")

    bb, starter = Backburner.open(address), Starter()
    bb.agent("starter", starter)
    with monkeypatch.context() as patched:
        patched.setattr(finishing, "stop_children", gone)
        async with bb:
            await (await bb.session("chat").ask("go", agent="starter")).wait(60)
    async with Backburner.open(address) as others:
        await others.runs.begin()
        for child in starter.children:
            left = await others.session(child.record.session).task(child.id)
            assert (await left.wait(60)).state is State.CANCELED
