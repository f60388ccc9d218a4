"""B7: the agent is closed exactly once, however its run ends."""

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest

from backburner import AgentAnswer, AgentRequest, Context, Outcome
from backburner.model.limits import RESULT_MAX_BYTES
from backburner.work.agents import running
from backburner.work.agents.protocol import Answer
from backburner.work.agents.running import run_agent
from tests.waiting import wait_until_async
from tests.work.agents.sayings import heard


class Closing:
    """Ends as its prompt says, and counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0
        self.begun = asyncio.Event()
        self.may_close = asyncio.Event()
        self.may_close.set()

    async def run(self, request: AgentRequest, context: Context) -> str:
        self.begun.set()
        match request.prompt:
            case "raise":
                raise ValueError("it broke")
            case "wait":
                await asyncio.Event().wait()
            case "nonsense":
                return 3  # pyright: ignore[reportReturnType]
            case _:
                pass
        return "answer"

    async def close(self) -> None:
        self.closed += 1
        await self.may_close.wait()


def running_on(agent: Closing, prompt: str) -> "asyncio.Task[object]":
    return asyncio.create_task(run_agent(lambda: agent, AgentRequest(prompt), heard()[1]))


@pytest.mark.parametrize("prompt", ["answer", "raise", "nonsense"])
async def test_b7_closed_exactly_once_on_success_and_on_error(prompt: str) -> None:
    agent = Closing()
    work = running_on(agent, prompt)
    await asyncio.wait([work])
    assert (work.exception() is None) is (prompt == "answer")
    assert agent.closed == 1


async def test_b7_closed_exactly_once_when_it_is_canceled() -> None:
    agent = Closing()
    work = running_on(agent, "wait")
    await agent.begun.wait()
    work.cancel()
    await asyncio.wait([work])
    assert work.cancelled()
    assert agent.closed == 1


async def test_b7_a_second_cancel_does_not_wait_for_a_slow_close_and_does_not_end_it() -> None:
    agent = Closing()
    agent.may_close.clear()
    work = running_on(agent, "wait")
    await agent.begun.wait()
    work.cancel()
    await wait_until_async(lambda: agent.closed)
    work.cancel()
    await asyncio.wait([work], timeout=30)
    assert work.cancelled()
    closing = [*running._closing]  # pyright: ignore[reportPrivateUsage]
    assert len(closing) == 1
    agent.may_close.set()
    await asyncio.wait(closing)
    assert agent.closed == 1
    assert closing[0].exception() is None


async def test_b7_a_close_that_hangs_or_raises_changes_no_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(running, "CLOSE_LIMIT_S", 0.01)

    class Hanging(Closing):
        async def close(self) -> None:
            await asyncio.Event().wait()

    class Raising(Closing):
        def close(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            raise ValueError("the memory is gone")

    caplog.set_level(logging.WARNING, "backburner.agents")
    for kind in (Hanging, Raising):
        outcome, _ = await run_agent(kind, AgentRequest("answer"), heard()[1])
        assert outcome.result == "answer"
    assert "was not closed after" in caplog.text
    assert "the memory is gone" in caplog.text


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit]
)
async def test_b7_a_close_that_would_end_the_application_changes_no_answer(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    class Ending(Closing):
        async def close(self) -> None:
            raise error

    outcome, _ = await run_agent(Ending, AgentRequest("answer"), heard()[1])
    assert outcome.result == "answer"
    assert "could not be closed" in caplog.text


async def test_b4_an_agent_whose_run_is_a_plain_function_does_not_block_the_loop() -> None:
    class Blocking:
        """Waits for something that only the loop can do."""

        def __init__(self) -> None:
            self.go = threading.Event()

        def run(self, request: AgentRequest, context: Context) -> str:
            assert self.go.wait(30)
            return f"{request.prompt}!"

    agent = Blocking()
    work = asyncio.create_task(
        run_agent(lambda: agent, AgentRequest("go"), heard()[1])  # type: ignore[arg-type,return-value]  # pyright: ignore[reportArgumentType]
    )
    asyncio.get_running_loop().call_soon(agent.go.set)
    outcome, _ = await work
    assert outcome.result == "go!"


async def test_b4_an_agent_cannot_end_the_loop() -> None:
    class Ending(Closing):
        async def run(self, request: AgentRequest, context: Context) -> str:
            raise KeyboardInterrupt

    agent = Ending()
    with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
        await run_agent(lambda: agent, AgentRequest("go"), heard()[1])
    assert agent.closed == 1


def as_outcome(text: str) -> Outcome:
    return Outcome(result=text)


@pytest.mark.parametrize("wrapped", [str, AgentAnswer, as_outcome])
async def test_b4_an_answer_that_is_too_long_is_cut(wrapped: Callable[[str], Answer]) -> None:
    class Long(Closing):
        async def run(self, request: AgentRequest, context: Context) -> Answer:  # pyright: ignore[reportIncompatibleMethodOverride]
            return wrapped("é" * RESULT_MAX_BYTES)

    outcome, _ = await run_agent(Long, AgentRequest("go"), heard()[1])
    assert outcome.result.endswith("é\n[the rest is left out]")
    assert len(outcome.result.encode()) <= running.TEXT_MAX_BYTES
