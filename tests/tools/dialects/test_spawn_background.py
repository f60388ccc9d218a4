"""E2 to E4, E9: durable runs of tools that have opted in, through `spawn_background`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner, Session, Settings, State, UsageError
from backburner.tools.dialects import offers_of
from backburner.tools.seen import Answer

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

RUN_FIELDS = {
    "run_id", "resource_id", "task_id", "title", "tool", "status", "signal_on_completion",
    "artifact_dir", "log_path", "result_path",
}  # fmt: skip
SCHEDULE_FIELDS = {
    "created", "status", "schedule_id", "schedule_type", "cron_expression", "scheduled_at",
    "timezone", "next_trigger_at", "enabled", "task_id", "title", "tool", "signal_on_completion",
}  # fmt: skip
HOURLY = {"cron_expression": "0 * * * *"}


def with_tools(bb: Backburner) -> asyncio.Event:
    """One tool that can run in the background, and some that cannot."""
    gate = asyncio.Event()

    @bb.tool(background=True, display_name="Crawl the web")
    async def crawl(pages: int) -> dict[str, int]:
        await gate.wait()
        return {"pages": pages}

    @bb.tool
    async def foreground() -> None: ...

    bb.registry.declare("elsewhere", {"type": "object"}, background=True)
    return gate


async def spawn(session: Session, arguments: Any) -> Answer:
    return await session.toolset(dialect="spawn_background").call("spawn_background", arguments)


async def test_e2_it_appears_when_a_tool_that_it_can_start_is_registered(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        assert session.toolset(dialect="spawn_background").names == []

        @bb.tool
        async def foreground() -> None: ...

        bb.registry.declare("elsewhere", {"type": "object"}, background=True)
        assert session.toolset(dialect="spawn_background").names == []

        @bb.tool(background=True)
        async def crawl() -> None: ...

        tools = session.toolset(dialect="spawn_background")
        assert tools.names == ["spawn_background"]
        (schema,) = tools.schemas("anthropic")
        assert schema["input_schema"]["required"] == ["tool", "args"]
        assert schema["input_schema"]["properties"].keys() == {
            "tool", "args", "title", "schedule", "signal_on_completion",
        }  # fmt: skip
        assert "crawl." in schema["input_schema"]["properties"]["tool"]["description"]


async def test_e4_the_reply_has_these_fields_and_the_files_are_there_at_the_end(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = with_tools(bb), bb.session("s")
        answer = await spawn(session, {"tool": "crawl", "args": {"pages": 3}})
        data = answer.data
        assert not answer.is_error
        assert data.keys() == RUN_FIELDS
        assert data["run_id"] == data["resource_id"] == data["task_id"]
        assert data["run_id"].startswith("bg_")
        assert (data["title"], data["tool"], data["status"]) == (
            "Crawl the web", "crawl", "running",
        )  # fmt: skip
        assert data["signal_on_completion"] is True
        assert data["run_id"] in answer.text
        assert "do not poll" in answer.text
        gate.set()
        task = await (await session.task(data["run_id"])).wait(30)
        assert task.state is State.SUCCEEDED
        assert Path(data["log_path"]) == Path(data["artifact_dir"], "output.log")
        assert Path(data["log_path"]).exists()
        result = json.loads(Path(data["result_path"]).read_text())
        assert (result["status"], result["result"]) == ("succeeded", {"pages": 3})


async def test_e2_title_and_silence_are_as_given(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = with_tools(bb), bb.session("s")
        gate.set()
        given = {"tool": " crawl ", "args": '{"pages": 1}', "title": "news"}
        answer = await spawn(session, {**given, "signal_on_completion": False})
        assert (answer.data["title"], answer.data["signal_on_completion"]) == ("news", False)
        await (await session.task(answer.data["run_id"])).wait(30)
        assert [each.record.state for each in await session.told()] in ([], ["dropped"])
        blank = await spawn(session, {"tool": "crawl", "args": {"pages": 1}, "title": "  "})
        assert blank.data["title"] == "Crawl the web"
        await (await session.task(blank.data["run_id"])).wait(30)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "tool: it is missing; args: it is missing"),
        ({"tool": None, "args": {}}, "tool: it is missing"),
        ({"tool": "", "args": {}}, "tool is blank"),
        ({"tool": " \t", "args": {}}, "tool is blank"),
        ({"tool": 4, "args": {}}, "tool: it has to be a text"),
        ({"tool": "crawl"}, "args: it is missing"),
        ({"tool": "crawl", "args": [1]}, "args: it has to be an object"),
        ({"tool": "crawl", "args": "[1]"}, "args: it has to be an object"),
        ({"tool": "crawl", "args": "pages=1"}, "args: it has to be a JSON object"),
        ({"tool": "crawl", "args": {"pages": "many"}}, "pages"),
        ({"tool": "crawl", "args": {"pages": 1, "deep": 1}}, "deep: no such argument"),
        ({"tool": "craw", "args": {}}, "there is no tool 'craw' (did you mean crawl?"),
        ({"tool": "x" * 500_000, "args": {}}, "there is no tool"),
        ({"tool": "spawn_background", "args": {}}, "spawn_background cannot start itself"),
        ({"tool": "foreground", "args": {}}, "cannot run in the background"),
        ({"tool": "elsewhere", "args": {}}, "nothing that carries it out"),
        ({"tool": "crawl", "args": {"pages": 1}, "when": "now"}, "'when': no such argument"),
        ({"tool": "crawl", "args": {}, "title": 5}, "title: it has to be a text"),
        ({"tool": "crawl", "args": {}, "signal_on_completion": "si"}, "signal_on_completion: it"),
        ({"tool": "crawl", "args": {}, "schedule": "daily"}, "schedule: it has to be a JSON"),
        ({"tool": "crawl", "args": {}, "schedule": {}}, "exactly one of cron_expression and"),
        ("{", "the arguments are no JSON"),
        ([], "the arguments are no object"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_e2_what_cannot_be_started_is_refused_with_a_clear_error(
    home: Path, arguments: Any, text: str
) -> None:
    async with Backburner.open(home) as bb:
        with_tools(bb)
        session = bb.session("bad")
        answer = await spawn(session, arguments)
        assert answer.is_error
        assert text in answer.text
        assert len(answer.text) < 400
        assert await session.tasks() == []
        assert await session.schedules() == []


async def test_e2_without_a_session_or_an_open_record_it_is_refused(home: Path) -> None:
    (offer,) = offers_of("spawn_background", None)
    with pytest.raises(UsageError, match="there is no session here"):
        await offer.handler({"tool": "crawl", "args": {}})
    async with Backburner.open(home) as bb:
        with_tools(bb)
        session = bb.session("s")
        (offer,) = session.toolset(dialect="spawn_background").offers
    with pytest.raises(UsageError, match="is not open, nor is its record, /"):
        await offer.handler({"tool": "crawl", "args": {"pages": 1}})


async def test_e3_one_more_than_the_limit_is_refused_with_the_limit_in_the_text(
    home: Path,
) -> None:
    async with Backburner.open(home, settings=Settings()) as bb:
        gate, session = with_tools(bb), bb.session("s")
        arguments = {"tool": "crawl", "args": {"pages": 1}}
        answers = [await spawn(session, arguments) for _ in range(6)]
        assert [answer.is_error for answer in answers] == [False] * 5 + [True]
        assert answers[5].data["error"]["code"] == "limit"
        assert "5 is the limit" in answers[5].text
        gate.set()
        for task in await session.tasks():
            await task.wait(30)
        assert not (await spawn(session, arguments)).is_error


async def test_e9_the_reply_to_a_cron_expression_has_these_fields(home: Path) -> None:
    async with Backburner.open(home) as bb:
        with_tools(bb)
        session = bb.session("s")
        schedule = {**HOURLY, "timezone": "Europe/Berlin"}
        answer = await spawn(
            session,
            {"tool": "crawl", "args": {"pages": 2}, "schedule": schedule, "title": "hourly"},
        )
        (made,) = await session.schedules()
        data = answer.data
        assert data.keys() == SCHEDULE_FIELDS
        assert data == {
            "created": True,
            "status": "scheduled",
            "schedule_id": made.id,
            "schedule_type": "cron",
            "cron_expression": "0 * * * *",
            "scheduled_at": None,
            "timezone": "Europe/Berlin",
            "next_trigger_at": made.document()["next_trigger_at"],
            "enabled": True,
            "task_id": made.document()["task_id"],
            "title": "hourly",
            "tool": "crawl",
            "signal_on_completion": True,
        }
        assert data["next_trigger_at"].endswith(":00:00.000000Z")
        assert made.id in answer.text


async def test_e9_the_reply_to_a_single_time(home: Path) -> None:
    async with Backburner.open(home) as bb:
        with_tools(bb)
        session = bb.session("s")
        schedule = {"scheduled_at": "2099-12-24T18:00:00+01:00", "cron_expression": None}
        answer = await spawn(
            session,
            {
                "tool": "crawl", "args": {"pages": 2}, "schedule": json.dumps(schedule),
                "signal_on_completion": False,
            },
        )  # fmt: skip
        data = answer.data
        assert data.keys() == SCHEDULE_FIELDS
        assert (data["schedule_type"], data["cron_expression"]) == ("once", None)
        assert data["scheduled_at"] == data["next_trigger_at"] == "2099-12-24T17:00:00.000000Z"
        assert (data["timezone"], data["title"]) == ("UTC", "Crawl the web")
        assert data["signal_on_completion"] is False
        assert await session.tasks() == []


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        ({"timezone": "UTC"}, "exactly one of cron_expression and scheduled_at"),
        ({**HOURLY, "scheduled_at": "2099-01-01T00:00:00Z"}, "exactly one of cron_expression"),
        ({**HOURLY, "every": "day"}, "'every' is no field of it"),
        ({"cron_expression": 5}, "cron_expression has to be a text"),
        ({"cron_expression": " "}, "cron_expression has to be a text"),
        ({"cron_expression": "* * * *"}, "5 fields"),
        ({"cron_expression": "0 0 0 * * *"}, "5 fields"),
        ({"cron_expression": "61 * * * *"}, "is no cron expression"),
        ({"cron_expression": "2099-01-01T00:00:00Z"}, "is no cron expression"),
        ({"cron_expression": "* " * 200_000}, "5 fields"),
        ({"scheduled_at": "0 * * * *"}, "is no RFC 3339 time"),
        ({"scheduled_at": "tomorrow"}, "is no RFC 3339 time"),
        ({"scheduled_at": "2099-01-01T00:00:00"}, "no time zone"),
        ({"scheduled_at": "2001-01-01T00:00:00Z"}, "that time has passed"),
        ({**HOURLY, "timezone": "Mars/Olympus"}, "there is no time zone 'Mars/Olympus'"),
        ({**HOURLY, "timezone": 2}, "timezone has to be a text"),
        ({**HOURLY, "timezone": "../../etc/passwd"}, "there is no time zone"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_e9_a_schedule_that_means_nothing_is_refused(
    home: Path, schedule: dict[str, Any], text: str
) -> None:
    async with Backburner.open(home) as bb:
        with_tools(bb)
        session = bb.session("bad")
        answer = await spawn(session, {"tool": "crawl", "args": {"pages": 1}, "schedule": schedule})
        assert answer.is_error
        assert text in answer.text
        assert len(answer.text) < 400
        assert await session.schedules() == []


@pytest.mark.parametrize("tool", ["spawn_background", "foreground", "elsewhere", "nothing", " "])
async def test_e9_what_cannot_be_started_is_not_scheduled_either(home: Path, tool: str) -> None:
    async with Backburner.open(home) as bb:
        with_tools(bb)
        session = bb.session("bad")
        answer = await spawn(session, {"tool": tool, "args": {}, "schedule": HOURLY})
        assert answer.is_error
        assert await session.schedules() == []


async def test_e9_one_schedule_more_than_the_limit_is_refused(home: Path) -> None:
    async with Backburner.open(home) as bb:
        with_tools(bb)
        session = bb.session("s")
        arguments = {"tool": "crawl", "args": {"pages": 1}, "schedule": HOURLY}
        answers = [await spawn(session, arguments) for _ in range(6)]
        assert [answer.is_error for answer in answers] == [False] * 5 + [True]
        assert answers[5].data["error"]["code"] == "limit"


async def test_e2_plan_refuses_and_a_dry_run_only_says_what_it_would_start(home: Path) -> None:
    async with Backburner.open(home) as bb:
        with_tools(bb)
        run = {"tool": "crawl", "args": {"pages": 1}}
        for arguments in (run, {**run, "schedule": HOURLY}):
            refused = await spawn(bb.session("s", mode="plan"), arguments)
            assert refused.data["error"]["code"] == "not_allowed"
            played = await spawn(bb.session("s", mode="dry_run"), arguments)
            assert played.text.startswith("[dry-run] would ")
        assert await bb.session("s").tasks() == []
        assert await bb.session("s").schedules() == []
