"""X3, X7: the tool set that we would give to a model ourselves, tool by tool."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner, Context, StoreFull
from backburner.tools.canonical import Canonical
from tests.tools.test_toolset import NAMES
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


async def test_a_task_of_another_session_does_not_exist_for_a_model(home: Path) -> None:
    async with Backburner.open(home) as bb:
        other = await bb.session("other").run("echo secret words", title="hidden")
        await other.wait(30)
        tools = bb.session("s").toolset()
        for name in ("background_output", "background_stop", "background_send"):
            arguments = {"id": other.id} | ({"text": "x"} if name == "background_send" else {})
            answer = await tools.call(name, arguments)
            assert answer.is_error
            assert "hidden" not in answer.text
            assert "secret" not in answer.text
        assert "No background tasks" in (await tools.call("background_list")).text


async def test_x3_output_comes_once_and_within_its_budget(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        tools = session.toolset()
        line = "for i in $(seq 1 3000); do echo compiling file $i; done; read x; echo the end"
        task = await session.run(line, stdin=True, title="build")

        async def printed() -> bool:
            return "compiling file 3000" in (await task.output(max_chars=None)).text

        await wait_until_async(printed)
        first = await tools.call("background_output", {"id": task.id})
        assert "compiling file 3000" in first.text
        assert "do not poll" in first.text
        assert len(first.text) < 4_500
        again = await tools.call("background_output", {"id": task.id})
        assert "compiling" not in again.text
        assert "Nothing new" in again.text
        await task.send("go")
        last = await tools.call("background_output", {"id": task.id, "wait_seconds": 30})
        assert "the end" in last.text
        assert "compiling" not in last.text
        assert "finished after" in last.text


async def test_a_tool_a_question_and_a_stop_through_the_tool_set(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def asks(context: Context, words: int) -> str:
            return await context.ask("Which one?") * words

        tools = bb.session("s").toolset()
        ids: list[str] = []
        asked: set[str] = set()
        while len(asked) < 2:  # a signal rides along with whatever is called next
            name = "background_run" if len(ids) < 2 else "background_list"
            given = {"tool": "asks", "args": {"words": 2}} if len(ids) < 2 else {}
            answer = await tools.call(name, given)
            ids += [answer.data["id"]] if "id" in answer.data else []
            signals = answer.data.get("signals", [])
            asked |= {each["task"] for each in signals if each["kind"] == "input_required"}
        assert "asks: Which one?" in (await tools.call("background_output", {"id": ids[0]})).text
        assert "answered" in (await tools.call("background_send", {"id": ids[0], "text": "A"})).text
        done = await tools.call("background_output", {"id": ids[0], "wait_seconds": 30})
        assert "result: AA" in done.text
        stopped = await tools.call("background_stop", {"id": ids[1]})
        assert "was stopped" in stopped.text
        again = await tools.call("background_stop", {"id": ids[1]})
        assert again.text.startswith("It is not running.")


async def test_a_blank_title_is_none(home: Path) -> None:
    async with Backburner.open(home) as bb:
        tools = bb.session("s").toolset()
        started = await tools.call("background_run", {"command": "sleep 3600", "title": " "})
        assert started.data["title"] == "sleep 3600"
        await tools.call("background_stop", {"id": started.data["id"], "force": True})


async def test_a_schedule_through_the_tool_set(home: Path) -> None:
    async with Backburner.open(home) as bb:
        tools = bb.session("s").toolset()
        added = await tools.call(
            "background_schedule",
            {
                "action": "add",
                "when": "*/10 * * * *",
                "command": "true",
                "cwd": "/tmp",
                "timezone": "Asia/Tokyo",
            },
        )
        (schedule,) = await bb.session("s").schedules()
        assert schedule.record.spec["cwd"] == "/tmp"
        assert added.data["timezone"] == "Asia/Tokyo"
        assert added.data["schedule_id"] in added.text
        listed = await tools.call("background_schedule", {"action": "list"})
        assert added.data["schedule_id"] in listed.text
        for action, word in (("pause", "paused"), ("resume", "active"), ("cancel", "canceled")):
            answer = await tools.call(
                "background_schedule", {"action": action, "id": added.data["schedule_id"]}
            )
            assert word in answer.text, answer


async def test_a_session_that_only_reads_is_told_so(home: Path) -> None:
    async with Backburner.open(home) as bb:
        tools = bb.session("s", mode="plan").toolset()
        refused = await tools.call("background_run", {"command": "true"})
        assert refused.is_error
        assert refused.data["error"]["code"] == "not_allowed"
        assert not (await tools.call("background_list")).is_error


def test_the_tools_of_the_canonical_set_are_these() -> None:
    offers = Canonical(None).offers()  # type: ignore[arg-type]  # nothing is called
    assert [offer.name for offer in offers] == NAMES
    assert [offer.name for offer in offers if offer.parallel] == [
        "background_list", "background_output",
    ]  # fmt: skip


async def test_x3_to_search_is_to_look_at_all_of_it_again(home: Path) -> None:
    """What was left out of a long output is found, and a search takes nothing away."""
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        script = "seq -f 'a %g' 3000; echo error: 7; seq -f 'b %g' 3000"
        task = await session.run(script, title="build")
        await task.wait(30)
        searching, reading = session.toolset(), session.toolset()
        search = {"id": task.id, "grep": "^error"}
        assert "error: 7" in (await searching.call("background_output", search)).text
        assert "b 3000" in (await searching.call("background_output", {"id": task.id})).text
        read = await reading.call("background_output", {"id": task.id})
        assert "error: 7" not in read.text, "it was left out"
        assert "error: 7" in (await reading.call("background_output", search)).text
        again = await reading.call("background_output", {"id": task.id})
        assert "Nothing new: grep looks at all of it." in again.text
        none = await reading.call("background_output", {"id": task.id, "grep": "warning"})
        assert "No line matches." in none.text


async def test_x3_what_runs_is_listed_however_much_has_ended_since(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        server = await session.run("sleep 3600", title="server")
        for number in range(45):
            await session.run("true", title=f"job {number}", cwd="/no/such/folder")
        tools = session.toolset()
        listed = await tools.call("background_list")
        assert server.id in listed.text
        ends = [line for line in listed.text.splitlines() if line.startswith("bg_")]
        assert len(ends) == 21
        active = await tools.call("background_list", {"active": True})
        assert [each["id"] for each in active.data["tasks"]] == [server.id]
        await server.stop(force=True)


async def test_x3_a_list_is_short_whatever_its_tasks_say(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def asks(context: Context) -> str:
            return await context.ask("why?\n" * 1000)

        session = bb.session("s")
        run = await session.spawn("asks")
        await wait_until_async(session.told)
        tools = session.toolset()
        await tools.call("background_list")  # it is told
        listed = await tools.call("background_list")
        assert "asks: why? why?" in listed.text
        assert len(listed.text) <= 300
        whole = await tools.call("background_output", {"id": run.id})
        assert whole.text.count("why?") == 1000
        await run.stop()


async def test_c3_a_model_answers_the_question_of_another_session(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session, other = bb.session("s"), bb.session("other")
        task = await session.run("sleep 3600", title="server")
        asking = asyncio.create_task(
            other.toolset("bg_task").call("BgTaskStop", {"task_id": task.id})
        )
        (signal,) = await wait_until_async(session.told)
        assert signal.record.data is not None
        question = signal.record.data["question"]
        tools = session.toolset()
        assert question in (await tools.call("background_list")).text
        given = {"id": task.id, "text": "yes", "question": question}
        answer = await tools.call("background_send", given)
        assert (answer.text.splitlines()[0], answer.is_error) == (
            "The question is answered.",
            False,
        )
        assert "is stopped" in (await asking).text


async def test_d4_a_dry_run_says_that_nothing_was_sent_or_scheduled(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run("sleep 3600")
        tools = bb.session("s", mode="dry_run").toolset()
        sent = await tools.call("background_send", {"id": task.id, "text": "x"})
        assert sent.text == f"[dry-run] would send it to {task.id}"
        given = {"action": "add", "when": "*/10 * * * *", "command": "true"}
        planned = await tools.call("background_schedule", given)
        assert "[dry-run] would schedule" in planned.text
        await task.stop(force=True)


async def test_e1_what_is_wrong_with_our_record_is_logged_and_not_told(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Backburner.open(home) as bb:
        tools = bb.session("s").toolset()

        async def full(*_: Any, **__: Any) -> Any:
            raise StoreFull(f"no room on the disk for the record in {home}")

        bb.store.newest = full  # type: ignore[method-assign]
        answer = await tools.call("background_list")
        assert (answer.is_error, answer.data["error"]["code"]) == (True, "full")
        assert answer.text.startswith("an internal error happened in background_list (reference")
        assert str(home) in caplog.text
