"""B4: an agent is anything that turns a prompt into an answer."""

import asyncio
import threading
from typing import Any

import pytest

from backburner import Agent, AgentAnswer, AgentRequest, Outcome, UsageError
from backburner.work.agents.adapt import AgentLike, adapted
from backburner.work.agents.command import CommandAgent
from backburner.work.agents.running import run_agent
from backburner.work.tools.context import Context
from tests.work.agents.sayings import heard


async def answer_of(agent: AgentLike, prompt: str = "hello") -> Any:
    make = adapted(agent)
    assert not isinstance(make, CommandAgent)
    outcome, _ = await run_agent(make, AgentRequest(prompt), heard()[1])
    return outcome.result


async def test_b4_a_function_of_the_prompt_is_an_agent() -> None:
    assert await answer_of(lambda prompt: f"{prompt}!") == "hello!"


async def test_b4_a_function_that_blocks_does_not_hold_up_the_loop() -> None:
    """It waits for something that only the loop can do."""
    go = threading.Event()

    def agent(prompt: str) -> str:
        assert go.wait(30)
        return prompt

    async def let_it_go() -> None:
        go.set()

    answer, _ = await asyncio.gather(answer_of(agent), let_it_go())
    assert answer == "hello"


async def test_b4_asynchronous_functions_and_those_of_a_request_are_agents() -> None:
    async def of_prompt(prompt: str) -> str:
        return prompt.upper()

    async def of_request(request: AgentRequest) -> AgentAnswer:
        return AgentAnswer(request.prompt)

    def by_annotation(what: AgentRequest) -> str:
        return what.prompt

    async def of_both(request: AgentRequest, context: Context) -> Outcome:
        context.status("answering")
        return Outcome(result={"said": request.prompt})

    def with_more(prompt: str, times: int = 2) -> str:
        return prompt * times

    assert await answer_of(of_prompt) == "HELLO"
    assert await answer_of(of_request) == "hello"
    assert await answer_of(by_annotation) == "hello"
    assert await answer_of(of_both) == {"said": "hello"}
    assert await answer_of(with_more) == "hellohello"


class Counting:
    """An agent that knows how often it was used."""

    made = 0

    def __init__(self) -> None:
        self.runs = 0
        type(self).made += 1

    async def run(self, request: AgentRequest, context: Context) -> str:
        self.runs += 1
        return f"{self.runs}"


async def test_b4_a_class_is_made_anew_for_each_prompt_and_an_agent_is_used_again() -> None:
    agent: Agent = Counting()
    assert [await answer_of(agent) for _ in range(2)] == ["1", "2"]
    Counting.made = 0
    assert [await answer_of(Counting) for _ in range(2)] == ["1", "1"]
    assert Counting.made == 2


class Callable:
    def __call__(self, prompt: str) -> str:
        return f"called with {prompt}"


class AsyncCallable:
    async def __call__(self, prompt: str) -> str:
        return f"awaited with {prompt}"


async def test_b4_objects_that_can_be_called_are_agents() -> None:
    assert await answer_of(Callable()) == "called with hello"
    assert await answer_of(AsyncCallable()) == "awaited with hello"


class NoAgent:
    pass


def nothing() -> str:
    return ""


def too_many(a: str, b: str, c: str) -> str:
    return a + b + c


def named_only(prompt: str, *, tone: str) -> str:
    return prompt + tone


@pytest.mark.parametrize("given", [NoAgent, NoAgent(), nothing, too_many, named_only, "claude", 3])
def test_what_cannot_be_an_agent_is_refused_when_it_is_registered(given: Any) -> None:
    with pytest.raises(UsageError, match="cannot be an agent"):
        adapted(given)


async def test_an_answer_that_is_none_is_a_clear_error() -> None:
    with pytest.raises(Exception, match="answered with a int, which is no text"):
        await answer_of(lambda _: 42)


def test_c4_a_prompt_for_a_program_never_becomes_an_option() -> None:
    agent = CommandAgent(["claude", "-p"])
    assert agent.argv("sum up") == ["claude", "-p", "sum up"]
    assert agent.argv("--dangerous") == ["claude", "-p", " --dangerous"]
    assert CommandAgent(["claude"], prompt="stdin").argv("--dangerous") == ["claude"]


@pytest.mark.parametrize(
    ("command", "prompt"), [("claude -p", "argument"), ([], "argument"), (["claude"], "file")]
)
def test_a_command_that_is_none_is_refused(command: Any, prompt: Any) -> None:
    with pytest.raises(UsageError):
        CommandAgent(command, prompt=prompt)
