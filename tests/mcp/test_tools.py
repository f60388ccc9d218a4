"""D2, X1, X6: plain tools over MCP, for clients of every version on the wire."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ListRootsResult, Root

from backburner import Backburner
from backburner.mcp import session_name
from backburner.mcp.reception import Reception
from backburner.mcp.server import opened
from tests.mcp.client import LEGACY, MODERN, REPOSITORY, connected, program, text_of
from tests.mcp.conftest import Serve
from tests.mcp.fixture_tools import REGISTRY
from tests.waiting import wait_until_async

pytestmark = pytest.mark.usefixtures("no_session_from_outside")

ERAS = (*LEGACY, MODERN)


@pytest.fixture
def era(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A version of the protocol; the client offers this one at its handshake."""
    if request.param != MODERN:
        monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", request.param)
    return request.param


every_era = pytest.mark.parametrize("era", ERAS, indirect=True)


@asynccontextmanager
async def served(home: Path, **options: Any) -> AsyncGenerator[Reception]:
    async with Backburner.open(home) as bb, opened(bb, None, REGISTRY, **options) as server:
        yield server


@every_era
@pytest.mark.slow
async def test_x6_the_program_serves_every_era_on_stdio(home: Path, era: str) -> None:
    async with connected(program("-m", "backburner.cli", "mcp"), era) as client:
        assert client.protocol_version == era
        names = [each.name for each in (await client.list_tools()).tools]
        assert names[:2] == ["background_run", "background_list"]
        started = await client.call_tool("background_run", {"command": "echo hel''lo; pwd"})
        task = cast("dict[str, Any]", started.structured_content)
        read = await client.call_tool("background_output", {"id": task["id"], "wait_seconds": 20})
        assert "hello" in text_of(read)
        assert str(REPOSITORY) in text_of(read)
        assert not read.is_error


@pytest.mark.slow
async def test_x6_the_program_serves_every_era_over_http(
    serve_http: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = serve_http("-m", "backburner.cli", "mcp", "--http", "0", "--json")
    for era in ERAS:
        if era != MODERN:
            monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", era)
        async with connected(url, era) as client:
            assert client.protocol_version == era
            listed = await client.call_tool("background_list", {})
            assert text_of(listed) == "No background tasks in this session."


@every_era
async def test_d2_past_the_budget_a_call_is_parked(home: Path, era: str) -> None:
    async with served(home, budget_s=0.05) as server, connected(server, era) as client:
        parked = await client.call_tool("slow_compute", {"seconds": 60})
        data = cast("dict[str, Any]", parked.structured_content)
        assert not parked.is_error
        assert (data["type"], data["tool"]) == ("background", "slow_compute")
        assert data["background_id"] in text_of(parked)
        stopped = await client.call_tool("background_stop", {"id": data["background_id"]})
        assert cast("dict[str, Any]", stopped.structured_content)["state"] == "canceled"


@every_era
async def test_x6_results_errors_and_pictures_come_as_mcp_says_them(home: Path, era: str) -> None:
    async with served(home) as server, connected(server, era) as client:
        assert text_of(await client.call_tool("greet", {"name": "Ada"})) == "Hello, Ada!"
        failed = await client.call_tool("test_error_handling", {})
        assert failed.is_error
        assert "intentionally" in text_of(failed)
        pictured = await client.call_tool("test_image_content", {})
        assert [each.type for each in pictured.content] == ["image"]
        with pytest.raises(MCPError) as refused:
            await client.call_tool("protocol_error_job", {})
        assert refused.value.error.message == "the machinery broke"


@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
async def test_d6_a_call_ends_with_its_caller(home: Path, tmp_path: Path, era: str) -> None:
    async with Backburner.open(home) as bb, opened(bb, "mine") as server:
        begun, ended = asyncio.Event(), asyncio.Event()

        @bb.tool
        async def linger() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        assert callable(linger)
        async with connected(server, era) as client:
            calling = asyncio.create_task(client.call_tool("linger", {}))
            await begun.wait()
            calling.cancel()
            await asyncio.wait_for(ended.wait(), 30)
        assert await bb.session("mine").tasks() == []


async def test_x6_a_wait_ends_with_the_budget(home: Path) -> None:
    async with served(home, budget_s=0.2) as server, connected(server) as client:
        started = await client.call_tool("background_run", {"command": "sleep 60"})
        task = cast("dict[str, Any]", started.structured_content)["id"]
        read = await client.call_tool("background_output", {"id": task, "wait_seconds": 500})
        assert cast("dict[str, Any]", read.structured_content)["finished_at"] is None
        await client.call_tool("background_stop", {"id": task, "force": True})


@pytest.mark.slow
async def test_x1_a_client_that_comes_back_is_told_how_it_ended(home: Path, tmp_path: Path) -> None:
    """The story of the issue: start a build, close the agent, open it again."""
    agent = program("-m", "backburner.cli", "mcp", cwd=tmp_path)
    async with connected(agent, "2025-11-25") as client:
        started = await client.call_tool("background_run", {"command": "exit 3", "title": "build"})
        task = cast("dict[str, Any]", started.structured_content)["id"]
    async with Backburner.open(home) as bb:
        mine = bb.session(session_name("tester", str(tmp_path)))
        await (await mine.task(task)).wait(30)
    async with connected(agent, MODERN) as again:
        told = await again.call_tool("background_list", {})
        assert f"[failed] build ({task}) failed: exit code 3" in text_of(told)
        once = await again.call_tool("background_list", {})
        assert "[failed]" not in text_of(once)


async def test_x1_signals_ride_along_with_the_tools_of_an_application(home: Path) -> None:
    async with Backburner.open(home) as bb, opened(bb, "mine", REGISTRY) as server:
        task = await bb.session("mine").run("true", title="job")
        await task.wait(30)
        async with connected(server) as client:
            greeted = await client.call_tool("greet", {})
            assert text_of(greeted).startswith("Hello, World!\n[completed] job")
            assert text_of(await client.call_tool("greet", {})) == "Hello, World!"


async def test_a6_another_client_sees_nothing_of_a_task(home: Path) -> None:
    async with served(home) as server:
        async with connected(server, name="one") as client:
            started = await client.call_tool("background_run", {"command": "true"})
        task = cast("dict[str, Any]", started.structured_content)["id"]
        async with connected(server, name="two") as other:
            read = await other.call_tool("background_output", {"id": task})
            assert read.is_error
            assert "no task" in text_of(read)


async def test_x6_the_roots_of_a_client_name_its_workspace(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work space"
    folder.mkdir()

    async def roots(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=folder.as_uri())])  # type: ignore[arg-type]

    async with Backburner.open(home) as bb, opened(bb) as server:
        async with connected(server, "2025-11-25", list_roots_callback=roots) as client:
            started = await client.call_tool("background_run", {"command": "pwd"})
        task = cast("dict[str, Any]", started.structured_content)["id"]
        mine = await bb.session(session_name("tester", str(folder))).task(task)
        await mine.wait(30)
        assert (await mine.output()).text.strip() == str(folder)


def test_x6_the_session_is_the_same_for_the_same_client_and_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert session_name("x", str(tmp_path / "link")) == session_name("x", str(tmp_path))
    name = session_name("Claude Code", "/srv/my repo/")
    assert name.startswith("claude-code@my-repo-")
    assert session_name("Claude Code", "/srv/my repo") == name
    assert session_name("Claude Code", "/srv/other/my repo") != name
    assert session_name("codex", "/srv/my repo") != name
    hostile = session_name("../\0\ud800" + "x" * 9999, "/")
    assert len(hostile) < 120
    assert os.sep not in hostile
    assert "\0" not in hostile


@pytest.mark.parametrize(
    "arguments",
    [
        {"id": "../../etc/passwd"},
        {"id": "bg_\0"},
        {"id": ["x"]},
        {"id": "x" * 100_000},
        {"id": "x", "wait_seconds": "NaN"},
        {"id": "x", "wait_seconds": -1e300},
        {"nothing": {"of": {"this": ["is", "known"]}}},
    ],
)
async def test_x6_hostile_arguments_are_answered_in_words(
    home: Path, arguments: dict[str, Any]
) -> None:
    async with served(home) as server, connected(server) as client:
        answered = await client.call_tool("background_output", arguments)
        assert answered.is_error
        assert "Traceback" not in text_of(answered)
        assert len(text_of(answered)) < 2_000


async def test_d9_no_secret_and_no_traceback_reaches_a_client(home: Path) -> None:
    async with served(home) as server, connected(server) as client:
        failed = await client.call_tool("leak", {"password": "hunter2-hunter2"})
        assert failed.is_error
        assert "hunter2" not in failed.model_dump_json()
        assert "sk-live-0123456789abcdef" not in failed.model_dump_json()
        with pytest.raises(MCPError) as refused:
            await client.call_tool("no_such_tool", {})
        assert refused.value.error.code == -32602


@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
async def test_e1_what_nobody_foresaw_is_a_reference_for_the_client(home: Path, era: str) -> None:
    async def broken(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "tools/list":
            raise RuntimeError("password=hunter2 in /srv/secret/place")
        return await call_next(ctx)

    async with served(home) as server, connected(server, era) as client:
        server.middleware.append(broken)
        with pytest.raises(MCPError) as failed:
            await client.list_tools()
    assert failed.value.error.code == -32603
    assert failed.value.error.message.startswith("an internal error happened (reference ie_")


@pytest.mark.slow
async def test_e1_an_internal_error_is_not_in_the_log_that_a_model_reads(home: Path) -> None:
    server = program("-m", "tests.mcp.fixture_server")
    async with connected(server) as client:
        parked = await client.call_tool("break_down", {})
        task = cast("dict[str, Any]", parked.structured_content)["background_id"]

        async def ended() -> str | None:
            read = await client.call_tool("background_output", {"id": task, "wait_seconds": 5})
            data = cast("dict[str, Any]", read.structured_content)
            return text_of(read) if data["finished_at"] else None

        text = await wait_until_async(ended)
        assert "an internal error happened" in text
        assert "Traceback" not in text
        assert "10.0.0.7" not in text


async def test_x6_a_client_that_asks_for_it_is_told_how_far_a_call_is(home: Path) -> None:
    """Within the budget; each is further than the last, and all come before the answer."""
    seen: list[tuple[float, float | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))
        assert message is None

    async with (
        Backburner.open(home) as bb,
        opened(bb, None, REGISTRY, budget_s=60) as server,
    ):
        for era in (MODERN, *LEGACY):
            async with connected(server, era) as client:
                seen.clear()
                plain = await client.call_tool("test_tool_with_progress", {})
                assert not seen
                told = await client.call_tool(
                    "test_tool_with_progress", {}, progress_callback=progressed
                )
                assert text_of(told) == text_of(plain) == "there"
                assert seen == [(0, 100), (50, 100), (100, 100)]
