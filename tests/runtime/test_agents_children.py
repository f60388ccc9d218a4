"""D8: what an agent starts is its own, is bounded in depth, and ends with it."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from backburner import (
    AgentRequest,
    Backburner,
    Context,
    ErrorKind,
    LimitReached,
    NotAllowed,
    NotFound,
    Session,
    State,
    Task,
)
from backburner.runtime.children import stop_left_children
from tests.conftest import REPOSITORY
from tests.faults.victims import unique_seconds

pytestmark = pytest.mark.slow  # short ones, each with processes


class Starter:
    """An agent that starts jobs in its session, then ends as its prompt says."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self.children: list[Task] = []
        self.begun = asyncio.Event()

    async def run(self, request: AgentRequest, context: Context) -> str:
        self.sessions.append(request.session)
        self.children += [await request.session.run(f"sleep {unique_seconds()}") for _ in range(2)]
        self.begun.set()
        if request.prompt == "wait":
            await asyncio.Event().wait()
        if request.prompt == "raise":
            raise ValueError("broken")
        return "done"


@pytest_asyncio.fixture
async def bb(shared_home: Path) -> AsyncGenerator[Backburner]:
    async with Backburner.open(shared_home) as opened:
        yield opened


async def ended(tasks: list[Task]) -> set[State]:
    return {(await task.wait(30)).state for task in tasks}


async def test_d8_children_belong_to_the_agent_and_to_its_own_session(bb: Backburner) -> None:
    starter = Starter()
    bb.agent("starter", starter)
    session = bb.session("d8", owner="ada")
    task = await session.ask("wait", agent="starter")
    await starter.begun.wait()
    own = starter.sessions[0]
    assert (own.name, own.scope.owner) == (task.id, "ada")
    children = await own.tasks()
    assert {child.id for child in children} == {child.id for child in starter.children}
    assert {child.record.parent for child in children} == {task.id}
    assert [each.id for each in await session.tasks()] == [task.id]
    await task.stop()


async def test_d8_it_cannot_see_or_cancel_what_its_parent_has_started(bb: Backburner) -> None:
    session = bb.session("d8-parent")
    other = await session.run(f"sleep {unique_seconds()}")
    refused: list[str] = []

    async def nosy(request: AgentRequest, context: Context) -> str:
        assert await request.session.tasks() == []
        for reference in (other.id, other.id[:8], context.task):
            with pytest.raises(NotFound):
                await request.session.task(reference)
            refused.append(reference)
        with pytest.raises(NotFound):
            await request.session.stop(other.id)
        return "nothing to see"

    bb.agent("nosy", nosy)
    task = await session.ask("look", agent="nosy")
    await task.wait(30)
    assert (task.state, task.error) == (State.SUCCEEDED, None)
    assert len(refused) == 3
    assert (await other.refresh()).state in (State.QUEUED, State.RUNNING)
    await other.stop(force=True)


@pytest.mark.parametrize("prompt", ["answer", "raise", "wait"])
async def test_d8_children_end_with_the_agent(bb: Backburner, prompt: str) -> None:
    starter = Starter()
    bb.agent("starter", starter)
    task = await bb.session("d8-end").ask(prompt, agent="starter")
    await starter.begun.wait()
    if prompt == "wait":
        await task.stop()
    await task.wait(30)
    assert await ended(starter.children) == {State.CANCELED}


async def test_d8_children_end_when_the_agent_has_had_its_time(bb: Backburner) -> None:
    for limit in (1, 5, 25):  # a busy machine may take longer than that to start them
        starter = Starter()
        bb.agent("starter", starter)
        task = await bb.session("d8-time").ask("wait", agent="starter", max_runtime=limit)
        assert await ended([task]) == {State.FAILED}
        if starter.begun.is_set():
            break
    assert await ended(starter.children) == {State.CANCELED}


async def test_d8_children_go_on_where_they_are_to_be_kept(bb: Backburner) -> None:
    starter = Starter()
    bb.agent("starter", starter)
    task = await bb.session("d8-keep").ask("answer", agent="starter", keep_children=True)
    await task.wait(30)
    await stop_left_children(bb.store, bb.home)
    for child in starter.children:
        await child.refresh()
        assert child.state in (State.QUEUED, State.RUNNING)
        assert child.record.stop is None
        await child.stop(force=True)


async def test_d8_an_agent_that_has_ended_starts_nothing_any_more(bb: Backburner) -> None:
    starter = Starter()
    bb.agent("starter", starter)
    task = await bb.session("d8-late").ask("answer", agent="starter")
    await task.wait(30)
    with pytest.raises(NotAllowed, match="has ended"):
        await starter.sessions[0].run("true")
    await ended(starter.children)


async def test_d8_agents_of_agents_are_two_deep_and_no_deeper(bb: Backburner) -> None:
    refusals: list[str] = []

    async def deeper(request: AgentRequest, context: Context) -> str:
        try:
            child = await request.session.ask(request.prompt + ">", agent="deeper")
        except LimitReached as error:
            refusals.append(str(error))
            with pytest.raises(LimitReached):
                await request.session.run("true")
            return request.prompt
        await child.wait(30)
        return str(child.result)

    bb.agent("deeper", deeper)
    task = await bb.session("d8-depth").ask("0", agent="deeper")
    await task.wait(30)
    assert task.result == "0>>"
    assert len(refusals) == 1
    assert "2 is the limit" in refusals[0]
    assert task.record.spec["depth"] == 0
    (child,) = await bb.session(task.id).tasks()
    (grandchild,) = await bb.session(child.id).tasks()
    assert (child.record.spec["depth"], grandchild.record.spec["depth"]) == (1, 2)
    assert (child.record.parent, grandchild.record.parent) == (task.id, child.id)


async def test_d8_the_depth_is_known_by_the_name_of_a_session_too(bb: Backburner) -> None:
    """As of a program that an agent has started, which has nothing but the name."""
    release = asyncio.Event()

    async def waiting(request: AgentRequest, context: Context) -> str:
        await release.wait()
        return "done"

    bb.agent("waiting", waiting)
    first = await bb.session("d8-name").ask("1", agent="waiting")
    second = await bb.session(first.id).ask("2", agent="waiting")
    third = await bb.session(second.id).ask("3", agent="waiting")
    assert third.record.spec["depth"] == 2
    with pytest.raises(LimitReached):
        await bb.session(third.id).ask("4", agent="waiting")
    with pytest.raises(LimitReached):
        await bb.session(third.id).run("true")
    child = await bb.session(second.id).run("true")
    assert child.record.parent == second.id
    release.set()
    await ended([first, child])


async def test_d8_stopping_the_first_ends_a_whole_family(bb: Backburner) -> None:
    starter = Starter()

    async def family(request: AgentRequest, context: Context) -> str:
        await request.session.ask("wait", agent="starter")
        await asyncio.Event().wait()
        return ""

    bb.agent("starter", starter)
    bb.agent("family", family)
    task = await bb.session("d8-family").ask("x", agent="family")
    await starter.begun.wait()
    await task.stop()
    (child,) = await bb.session(task.id).tasks()
    assert await ended([child, *starter.children]) == {State.CANCELED}


async def test_e11_children_end_when_the_application_of_their_agent_is_killed(
    home: Path,
) -> None:
    program = [sys.executable, "-m", "tests.runtime.orphaning", str(home), "s"]
    running = await asyncio.create_subprocess_exec(*program, stdout=subprocess.PIPE, cwd=REPOSITORY)
    assert running.stdout is not None
    try:
        assert await running.stdout.readline() == b"all there\n"
    finally:
        running.kill()
        await running.wait()
    async with Backburner.open(home) as bb:
        (outer,) = await bb.session("s").tasks()
        await outer.wait(30)
        assert outer.error is not None
        assert outer.error.kind is ErrorKind.ORPHANED
        children = await bb.session(outer.id).tasks()
        (inner,) = [each for each in children if each.record.kind == "agent"]
        children += await bb.session(inner.id).tasks()
        assert len(children) == 3
        assert await ended(children) <= {State.CANCELED, State.FAILED}
        signals = [each for each in await bb.session("s").told() if each.task == outer.id]
        assert len(signals) == 1
