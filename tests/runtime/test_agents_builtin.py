"""B4, B6, B7: the built-in agent as a task, with a model over the wire."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, State
from tests.openai_server import Calls, OpenAIServer, Refuses, Says, openai_server
from tests.runtime.asking import PNG, said, told

KEY = "sk-a-key-that-nobody-may-see"

pytestmark = pytest.mark.slow  # the first one in a process loads pydantic-ai, which takes seconds


@pytest.fixture
def model_server(shared_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """The model that the environment names."""
    with openai_server(Says("hello")) as server:
        monkeypatch.setenv("BACKBURNER_MODEL", "openai:gpt-test")
        monkeypatch.setenv("BACKBURNER_MODEL_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


async def test_b4_the_built_in_agent_answers_with_the_tools_of_the_application(
    model_server: OpenAIServer, tmp_path: Path
) -> None:
    (tmp_path / "photo.png").write_bytes(PNG)
    model_server.answers(Calls.of("stock", item="bolts"), Says("There are 7 bolts."))
    async with Backburner.open() as bb:

        @bb.tool
        def stock(item: str) -> int:
            """How many there are."""
            return len(item) + 2

        session = bb.session("builtin")
        task = await session.ask("How many bolts?", attachments=[tmp_path / "photo.png"])
        await task.wait(60)
        assert (task.state, task.result) == (State.SUCCEEDED, "There are 7 bolts.")
        assert task.record.usage == {"input_tokens": 22, "output_tokens": 14, "requests": 2}
        first, second = model_server.asked
        assert first.said_by("user")[0][1]["type"] == "image_url"
        assert second.said_by("tool") == ["7"]
        assert "[stdout] There are 7 bolts." in (await task.output()).text
        assert await told(session, task) == ["completed"]
        assert task.record.spec["attachments"] == [
            {"name": "photo.png", "media_type": "image/png", "bytes": 16}
        ]


async def test_b6_a_refused_key_fails_with_one_clear_message_and_is_nowhere_on_disk(
    model_server: OpenAIServer, shared_home: Path
) -> None:
    model_server.answers(Refuses(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"))
    async with Backburner.open() as bb:
        session = bb.session("refused-key")
        task = await session.ask("x")
        await task.wait(60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.ERROR
        assert task.error.message.startswith("the key for openai:gpt-test was refused")
        assert await told(session, task) == ["failed"]
    for path in shared_home.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


async def test_b7_a_stop_in_the_middle_of_a_stream(model_server: OpenAIServer) -> None:
    model_server.answers(Says("first half, second half", held=True))
    async with Backburner.open() as bb:
        task = await bb.session("stream").ask("x")
        await said(task, "first")
        await task.stop()
        assert task.state is State.CANCELED
