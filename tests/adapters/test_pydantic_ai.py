"""X1: what a session is told while an agent of Pydantic AI runs is enqueued into the run."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelHTTPError, RunContext

from backburner import Backburner
from backburner.adapters.pydantic_ai import Background
from backburner.app import Session
from backburner.model.signals import SignalState
from tests.adapters.programs import conversation, offered
from tests.openai_server import Asked, Calls, OpenAIServer, Refuses, Says, openai_server
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow

TOLD = "build (bg_"


def waiter(asked: Asked) -> Says | Calls:
    """Starts a build, and looks around until it was told of the end."""
    if TOLD in conversation(asked):
        return Says("It has ended.")
    if "Started bg_" not in conversation(asked):
        return Calls.of("background_run", command="true", title="build")
    return Calls.of("look_around")


async def look_around(ctx: RunContext[Any]) -> str:
    """Other work, which takes until there is something to be told."""
    await wait_until_async(lambda: bool(ctx.pending_messages))
    return "Nothing here."


def waits_for_nothing(asked: Asked) -> Says | Calls:
    """Lists the tasks, and is done."""
    return Says("Seen.") if "build" in conversation(asked) else Calls.of("background_list")


def agent_of(session: Session, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> Agent[Any]:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    background = Background(session)
    return Agent("openai-chat:gpt-5.5", tools=[look_around], capabilities=[background], retries=0)


async def run(agent: Agent[Any], prompt: str) -> Any:
    """What it answers; its connections are closed then."""
    async with agent:
        return await agent.run(prompt)


async def states(session: Session) -> list[SignalState]:
    return [signal.record.state for signal in await session.told()]


async def test_x1_the_model_is_told_within_the_run_and_then_it_is_delivered(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Backburner.open() as bb:
        session = bb.session("test")
        with openai_server(waiter) as server:
            agent = agent_of(session, server, monkeypatch)
            result = await run(agent, "Build.")
        assert result.output == "It has ended."
        assert await states(session) == [SignalState.DELIVERED]
        last = server.asked[-1]
        assert json.dumps(last.said_by("user")).count(TOLD) == 1
        assert offered(last, "background_run")


async def test_x1_what_the_model_did_not_answer_to_is_told_in_the_next_run(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses_when_told(asked: Asked) -> Says | Calls | Refuses:
        return Refuses(400) if TOLD in conversation(asked) else waiter(asked)

    async with Backburner.open() as bb:
        session = bb.session("test")
        with openai_server(refuses_when_told) as server:
            agent = agent_of(session, server, monkeypatch)
            with pytest.raises(ModelHTTPError):
                await run(agent, "Build.")
            assert await states(session) == [SignalState.PENDING]
            first = Calls.of("look_around")
            server.answers(first, Says("Now I know."))
            assert (await run(agent, "And?")).output == "Now I know."
        assert TOLD in json.dumps(server.asked[-1].said_by("user"))
        assert await states(session) == [SignalState.DELIVERED]


async def test_x1_what_comes_after_the_run_goes_to_who_follows_the_session(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    build = f"until [ -e {gate} ]; do sleep 0.05; done"
    async with Backburner.open() as bb:
        session = bb.session("test")
        start = Calls.of("background_run", command=build, title="build")
        with openai_server(start, Says("It is running.")) as server:
            agent = agent_of(session, server, monkeypatch)
            assert (await run(agent, "Build.")).output == "It is running."
        gate.touch()
        async for signal in session.signals():
            assert signal.text.startswith(TOLD)
            await signal.ack()
            break
        assert await states(session) == [SignalState.DELIVERED]


@pytest.fixture
def only_with_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to be told rides along with a tool's answer: nobody else is quicker."""

    def follows_nothing(*_: object) -> contextlib.AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()

    monkeypatch.setattr(Session, "follow_up", follows_nothing)


@pytest.mark.usefixtures("only_with_answers")
async def test_x1_what_rode_along_is_delivered_when_the_model_has_answered(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Backburner.open() as bb:
        session = bb.session("test")
        await (await session.run("true", title="build")).wait()
        with openai_server(waits_for_nothing) as server:
            await run(agent_of(session, server, monkeypatch), "Look.")
        assert TOLD in conversation(server.asked[-1])
        assert await states(session) == [SignalState.DELIVERED]


@pytest.mark.usefixtures("only_with_answers")
async def test_x1_what_rode_along_in_a_run_that_failed_is_told_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Backburner.open() as bb:
        session = bb.session("test")
        await (await session.run("true", title="build")).wait()
        with openai_server(Calls.of("background_list"), Refuses(400)) as server:
            agent = agent_of(session, server, monkeypatch)
            with pytest.raises(ModelHTTPError):
                await run(agent, "Look.")
            assert TOLD in conversation(server.asked[-1])
            assert await states(session) == [SignalState.PENDING]
            server.answers(Calls.of("background_list"), Says("Now I know."))
            await run(agent, "And?")
        assert f"[completed] {TOLD}" in conversation(server.asked[-1])
        assert await states(session) == [SignalState.DELIVERED]


@pytest.mark.parametrize(("mode", "role"), [("normal", "viewer"), ("dry_run", "user")])
async def test_a9_who_only_looks_takes_nothing_from_the_inbox(
    home: Path, monkeypatch: pytest.MonkeyPatch, mode: str, role: str
) -> None:
    async with Backburner.open() as bb:
        task = await bb.session("test").run("true", title="build")
        await task.wait()
        session = bb.session("test", mode=mode, role=role)
        with openai_server(waits_for_nothing) as server:
            agent = agent_of(session, server, monkeypatch)
            assert (await run(agent, "Look.")).output == "Seen."
        assert await states(session) == [SignalState.PENDING]
