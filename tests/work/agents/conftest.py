"""A server that speaks the OpenAI wire protocol, for the built-in agent."""

from collections.abc import Iterator

import pytest

from tests.openai_server import OpenAIServer, Says, openai_server

KEY = "sk-a-key-that-nobody-may-see"


@pytest.fixture
def model_server(
    monkeypatch: pytest.MonkeyPatch, clean_environment: None
) -> Iterator[OpenAIServer]:
    """The model that the environment names."""
    with openai_server(Says("hello")) as server:
        monkeypatch.setenv("BACKBURNER_MODEL", "openai:gpt-test")
        monkeypatch.setenv("BACKBURNER_MODEL_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server
