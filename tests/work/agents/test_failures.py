"""B6: each way in which a model gives no answer ends in one clear sentence, without secrets."""

import logging
import sys

import pytest

from backburner import AgentRequest, Attachment, Outcome, Registry
from backburner.work.agents.builtin import ModelAgent
from tests.openai_server import Calls, Fails, OpenAIServer, Refuses, Says, Turn
from tests.work.agents.conftest import KEY
from tests.work.agents.sayings import heard

pytestmark = pytest.mark.slow  # the first one in a process loads pydantic-ai, which takes seconds

SOON = {"retry-after-ms": "1"}


async def failure(agent: ModelAgent | None = None) -> Outcome:
    answer = await (agent or ModelAgent(registry=Registry())).run(AgentRequest("x"), heard()[1])
    assert isinstance(answer, Outcome)
    assert not answer.success
    return answer


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (
            Refuses(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"),
            "the key for openai:gpt-test was refused",
        ),
        (Refuses(403, "not yours"), "the key for openai:gpt-test was refused"),
        (Refuses(404, "?", "model_not_found"), "does not know the model openai:gpt-test"),
        (Refuses(429, "?", "rate_limit_exceeded", SOON), "rate limit of openai:gpt-test"),
        (Refuses(429, "?", "insufficient_quota", SOON), "has no quota left"),
        (Refuses(400, "?", "context_length_exceeded"), "too long for openai:gpt-test"),
        (Refuses(400, f"api_key={KEY} is odd {KEY}"), "refused the request (status 400): api_key="),
        (Refuses(500, "?", None, SOON), "has a problem of its own"),
        (Refuses(503, "?", None, SOON), "is not available"),
        (Fails("break"), "the connection to openai:gpt-test failed or broke off"),
        (Fails("garbage"), "an answer that cannot be understood"),
        (Fails("not json"), "an answer that cannot be understood"),
        (Says("The answer is", finish=None), "the answer of openai:gpt-test broke off"),
        (Says("", finish="content_filter"), "a content filter"),
        (Says("The ans", finish="content_filter"), "a content filter"),
        (Says(""), "an answer that cannot be understood"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_b6_what_a_model_refuses_or_breaks_is_said_clearly(
    model_server: OpenAIServer, turn: Turn, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "backburner.agents")
    model_server.answers(turn)
    failed = await failure()
    assert failed.summary is not None
    assert says in failed.summary
    assert KEY not in failed.summary
    assert "Traceback" not in failed.summary
    if not (isinstance(turn, Says) and turn.finish == "content_filter" and turn.text):
        assert "Traceback" in caplog.text
    assert KEY not in caplog.text


async def test_b4_a_file_that_no_model_takes_is_said_before_anything_is_sent(
    model_server: OpenAIServer,
) -> None:
    files = (Attachment(b"\0\1", "application/octet-stream"),)
    agent = ModelAgent(registry=Registry())
    failed = await agent.run(AgentRequest("x", files), heard()[1])
    assert isinstance(failed, Outcome)
    assert "does not take an attachment of this kind" in str(failed.summary)
    assert "application/octet-stream" in str(failed.summary)
    assert model_server.asked == []


async def test_b6_a_rate_limit_is_tried_again_first(model_server: OpenAIServer) -> None:
    limited = Refuses(429, "?", "rate_limit_exceeded", SOON)
    model_server.answers(limited, limited, Says("at last"))
    answer = await ModelAgent(registry=Registry()).run(AgentRequest("x"), heard()[1])
    assert getattr(answer, "text", None) == "at last"


async def test_b6_a_model_that_does_not_answer_is_not_waited_for_for_ever(
    model_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_MODEL_TIMEOUT", "0.05")
    model_server.answers(Fails("hang"))
    assert "did not answer in time" in str((await failure()).summary)


async def test_b6_a_model_that_cannot_be_reached(
    model_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server.answers(Fails("hang up"))
    assert "failed or broke off" in str((await failure()).summary)


async def test_b6_a_model_that_only_calls_tools_comes_to_an_end(
    model_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backburner.work.agents.builtin.REQUESTS_MAX", 3)
    registry = Registry()

    @registry.tool
    def again() -> str:
        """Call it again."""
        return "call it again"

    model_server.answers(Calls.of("again"))
    failed = await failure(ModelAgent(registry=registry))
    assert "came to no answer within the limits" in str(failed.summary)
    assert failed.usage == {"input_tokens": 33, "output_tokens": 21, "requests": 3}


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("", "no model is configured (set BACKBURNER_MODEL"),
        ("gpt-5", "'gpt-5' is no model"),
        ("openai:gpt-5", "there is no key for openai:gpt-5 (set OPENAI_API_KEY)"),
        ("anthropic:claude-x", "there is no key for anthropic:claude-x (set ANTHROPIC_API_KEY)"),
        ("nobody:model", "nobody:model cannot be used"),
    ],
)
async def test_b6_no_model_and_no_key_are_said_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, model: str, says: str
) -> None:
    monkeypatch.setenv("BACKBURNER_MODEL", model)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert says in str((await failure()).summary)


async def test_an_address_for_another_kind_of_service_is_refused(
    model_server: OpenAIServer,
) -> None:
    failed = await failure(ModelAgent("anthropic:claude-x", registry=Registry()))
    assert "BACKBURNER_MODEL_URL does not go with anthropic:claude-x" in str(failed.summary)
    assert model_server.asked == []


async def test_b6_a_time_out_that_is_none_is_said(
    model_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_MODEL_TIMEOUT", "soon")
    assert "BACKBURNER_MODEL_TIMEOUT='soon'" in str((await failure()).summary)


async def test_b6_without_the_extra_it_says_what_to_install(
    model_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("backburner.work.agents.conv")]:
        monkeypatch.delitem(sys.modules, name)
    import backburner.work.agents as package

    monkeypatch.delattr(package, "conversing", raising=False)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    failed = await failure()
    assert failed.summary == (
        'the built-in agent is not installed (pip install "backburner[agent]")'
    )
