"""B4: the built-in agent with a model, over the wire."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backburner import AgentAnswer, AgentRequest, Context, Image, Outcome, Registry, ToolError
from backburner.work.agents.attachments import attached
from backburner.work.agents.builtin import ModelAgent
from tests.anthropic_server import KEY as ANTHROPIC_KEY
from tests.anthropic_server import anthropic_server
from tests.openai_server import Calls, OpenAIServer, Says
from tests.waiting import wait_until_async
from tests.work.agents.sayings import Heard, heard

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8

pytestmark = pytest.mark.slow  # the first one in a process loads pydantic-ai, which takes seconds


def tools() -> Registry:
    registry = Registry()

    @registry.tool(readonly=True)
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @registry.tool
    def draw() -> Outcome:
        """Draw a picture."""
        return Outcome(result="a red square", images=[Image(PNG, name="square.png")])

    @registry.tool
    async def breaks(password: str) -> None:
        """Break."""
        raise ToolError(f"refused with password={password}")

    @registry.tool
    def says_no() -> Outcome:
        """Say no."""
        return Outcome(success=False, result="no")

    @registry.tool
    def much() -> str:
        """Say much."""
        return "x" * 100_000

    registry.declare("elsewhere", {"type": "object", "properties": {}})
    return registry


async def ask(
    prompt: str, registry: Registry | None = None, **request: Any
) -> tuple[AgentAnswer, Heard]:
    sink, context = heard()
    given = AgentRequest(prompt, **request)
    answer = await ModelAgent(registry=registry or tools()).run(given, context)
    assert isinstance(answer, AgentAnswer), answer
    return answer, sink


async def test_b4_a_prompt_goes_to_the_model_and_its_text_comes_back(
    model_server: OpenAIServer,
) -> None:
    model_server.answers(Says("It is done.\nReally."))
    answer, sink = await ask("Do it")
    assert answer.text == "It is done.\nReally."
    assert answer.usage == {"input_tokens": 11, "output_tokens": 7, "requests": 1}
    assert sink.said("stdout") == "It is done.\nReally.\n"
    (asked,) = model_server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body["model"] == "gpt-test"
    assert asked.body["stream"] is True
    assert asked.said_by("user") == ["Do it"]
    assert "background" in asked.said_by("system")[0]
    assert asked.key == "sk-a-key-that-nobody-may-see"


async def test_b4_text_is_in_the_log_while_the_model_goes_on(model_server: OpenAIServer) -> None:
    model_server.answers(Says("first half, second half", held=True))
    sink, context = heard()
    work = asyncio.create_task(ModelAgent(registry=tools()).run(AgentRequest("x"), context))
    await wait_until_async(lambda: sink.said("stdout").startswith("first half"[:8]))
    assert not work.done()
    model_server.go.set()
    assert await work


async def test_b4_tools_are_called_and_their_results_told(model_server: OpenAIServer) -> None:
    model_server.answers(Calls.of("add", a=2, b=3), Says("It is 5."))
    answer, sink = await ask("What is 2 + 3?")
    assert answer.text == "It is 5."
    assert answer.usage["requests"] == 2
    first, second = model_server.asked
    assert first.tools == ["add", "draw", "breaks", "says_no", "much"]
    assert second.said_by("tool") == ["5"]
    assert sink.statuses == ["calls add"]
    assert sink.said("stderr") == "calls add a=2 b=3\n"


async def test_e1_what_goes_wrong_in_a_tool_is_told_to_the_model_and_ends_nothing(
    model_server: OpenAIServer,
) -> None:
    model_server.answers(
        Calls(
            (
                ("add", {"a": "two", "c": 1}),
                ("breaks", {"password": "hunter22"}),
                ("says_no", {}),
                ("much", {}),
            )
        ),
        Calls((("add", "{nonsense"),)),
        Calls((("add", "[1]"),)),
        Calls.of("no_such_tool"),
        Says("I give up."),
    )
    answer, sink = await ask("try")
    assert answer.text == "I give up."
    invalid, broken, refused, much = model_server.asked[1].said_by("tool")
    assert "b" in invalid
    assert "c" in invalid
    assert "refused with" in broken
    assert "no" in refused
    assert len(much) < 65_000
    assert "36,000 more characters" in much
    assert "hunter22" not in sink.said("stderr")
    assert len(model_server.asked) == 5


async def test_b4_pictures_go_to_the_model_and_pictures_of_tools_come_back(
    model_server: OpenAIServer, tmp_path: Path
) -> None:
    (tmp_path / "photo.png").write_bytes(PNG)
    model_server.answers(Calls.of("draw"), Says("Here it is."))
    answer, _ = await ask("draw this", attachments=attached([tmp_path / "photo.png"]))
    content = model_server.asked[0].said_by("user")[0]
    assert content[0] == {"type": "text", "text": "draw this"}
    assert content[1]["type"] == "image_url"
    assert content[1]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert answer.media == [Image(PNG, name="square.png")]
    shown = model_server.asked[1].said_by("user")[-1]
    assert any(part["type"] == "image_url" for part in shown)


async def test_e13_it_has_the_default_tools_and_those_of_the_caller(
    model_server: OpenAIServer,
) -> None:
    caller = Registry()

    @caller.tool
    def add(numbers: list[int]) -> int:
        """Add many."""
        return sum(numbers)

    @caller.tool
    def release() -> None:
        """Release it."""

    _, context = heard()
    model_server.answers(Calls.of("add", numbers=[1, 2, 3]), Says("6"))
    await ModelAgent().run(AgentRequest("x", registry=caller), context)
    offered = model_server.asked[0].tools
    assert {"get_current_time", "read_file", "web_fetch", "release"} <= set(offered)
    assert not {"shell", "spawn_background"} & set(offered)
    assert len(offered) == len(set(offered))
    assert model_server.asked[1].said_by("tool") == ["6"]


async def test_the_caller_may_wish_for_another_model(model_server: OpenAIServer) -> None:
    await ask("x", model="openai:gpt-other")
    assert model_server.asked[0].body["model"] == "gpt-other"


async def test_an_answer_that_was_cut_at_the_limit_of_the_model_says_so(
    model_server: OpenAIServer,
) -> None:
    model_server.answers(Says("It goes on and", finish="length"))
    answer, sink = await ask("x")
    assert answer.text == "It goes on and"
    assert "cut at the limit" in sink.said("stderr")


async def test_a_run_that_is_canceled_lets_go_of_the_connection(
    model_server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    model_server.answers(Says("first half, second half", held=True))
    sink, context = heard()
    work = asyncio.create_task(ModelAgent(registry=tools()).run(AgentRequest("x"), context))
    await wait_until_async(lambda: sink.said("stdout"))
    work.cancel()
    await asyncio.wait([work])
    assert work.cancelled()
    assert caplog.text == ""


def test_pydantic_ai_is_loaded_with_the_first_prompt_only() -> None:
    program = (
        "import sys, backburner; backburner.ModelAgent; backburner.Backburner;"
        "import backburner.app.agents;"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = run.stdout.decode().split()
    assert "backburner.work.agents.builtin" in loaded
    assert not {"pydantic_ai", "openai", "anthropic", "httpx2"} & set(loaded)


async def test_a_context_is_passed_on_to_the_tools(model_server: OpenAIServer) -> None:
    registry = Registry()

    @registry.tool
    async def reports(context: Context) -> str:
        """Report."""
        context.output("stdout", "from within\n")
        return "ok"

    model_server.answers(Calls.of("reports"), Says("done"))
    _, sink = await ask("x", registry)
    assert sink.said("stdout") == "from within\ndone\n"


@pytest.fixture
def responses_server(model_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    """The same as OpenAI itself would be reached: through the Responses API."""
    monkeypatch.delenv("BACKBURNER_MODEL_URL")
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.url)
    return model_server


async def test_b4_openai_itself_is_asked_through_the_responses_api(
    responses_server: OpenAIServer,
) -> None:
    responses_server.answers(Calls.of("add", a=2, b=3), Says("It is 5."))
    answer, sink = await ask("What is 2 + 3?")
    assert answer.text == "It is 5."
    assert answer.usage == {"input_tokens": 22, "output_tokens": 14, "requests": 2}
    assert sink.said("stdout") == "It is 5.\n"
    first, second = responses_server.asked
    assert first.path == "/v1/responses"
    assert first.tools[0] == "add"
    outputs = [each for each in second.body["input"] if each.get("type") == "function_call_output"]
    assert [each["output"] for each in outputs] == ["5"]


async def test_b6_a_stream_of_the_responses_api_that_just_ends_is_no_answer(
    responses_server: OpenAIServer,
) -> None:
    responses_server.answers(Says("It is", finish=None))
    sink, context = heard()
    answer = await ModelAgent(registry=tools()).run(AgentRequest("x"), context)
    assert isinstance(answer, Outcome), (answer, sink)
    assert "broke off" in str(answer.summary)


async def test_b4_a_model_of_anthropic_answers_and_refuses_a_wrong_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with anthropic_server() as url:
        monkeypatch.setenv("BACKBURNER_MODEL", "anthropic:claude-x")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", ANTHROPIC_KEY)
        answer, sink = await ask("Say hello")
        assert answer.text == "Bonjour."
        assert answer.usage == {"input_tokens": 11, "output_tokens": 7, "requests": 1}
        assert sink.said("stdout") == "Bonjour.\n"
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-a-wrong-one")
        refused = await ModelAgent(registry=tools()).run(AgentRequest("x"), heard()[1])
        assert isinstance(refused, Outcome)
        assert "the key for anthropic:claude-x was refused" in str(refused.summary)
