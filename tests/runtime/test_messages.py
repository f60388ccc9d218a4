"""E12: two-way messages with a running task of any kind, answers that fit, ends of sessions."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from backburner import (
    Backburner,
    Context,
    InputRefused,
    NobodyAsked,
    Session,
    Signal,
    SignalKind,
    SignalState,
    State,
    Task,
    TimeIsUp,
    UsageError,
)
from tests.faults.victims import kill_all_of_ours, unique_seconds
from tests.runtime.scripts import PROGRAM, open_questions
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

FUNCTIONS = "tests.runtime.functions"


async def told(session: Session, count: int = 1) -> list[Signal]:
    """What tasks have told a session, once there is so much of it."""

    async def enough() -> list[Signal] | None:
        found = [each for each in await session.told() if each.record.kind is SignalKind.MESSAGE]
        return found if len(found) >= count else None

    return await wait_until_async(enough)


# To a task


async def test_e12_a_python_task_gets_messages_once_and_in_order(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("python")
        task = await session.call(f"{FUNCTIONS}:echo_messages", {"count": 3})
        assert await task.send("before it listens") is None
        (said,) = await told(session)
        assert said.text.endswith(f"({task.id}) says: listening")
        await task.send("two\nlines é")
        await task.send("")
        await task.wait(60)
        assert task.result == ["before it listens", "two\nlines é", ""]
        with pytest.raises(InputRefused, match="has ended"):
            await task.send("late")


async def test_e12_messages_survive_a_kill_of_everything_of_ours(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("killed")
        task = await session.call(f"{FUNCTIONS}:echo_messages", {"count": 2})
        await told(session)
        await task.send("one")
        kill_all_of_ours(home)
        await task.send("two")
        await task.wait(60)
        assert task.result == ["one", "two"]


async def test_e12_a_tool_in_this_process_talks_with_its_session(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:

        @bb.tool(background=True)
        async def converse(context: Context) -> list[Any]:
            await context.tell("ready when you are")
            first = await context.receive(timeout=60)
            number = await context.ask("How many?", schema={"type": "integer"})
            with pytest.raises(TimeIsUp):
                await context.receive(timeout=0.01)
            return [first, number]

        session = bb.session("tool")
        task = await session.spawn("converse")
        (said,) = await told(session)
        assert said.text.endswith("says: ready when you are")
        await task.send("begin")
        (question,) = await open_questions(task)
        with pytest.raises(UsageError, match="not of type 'integer'"):
            await task.send("many")
        assert (await task.refresh()).state is State.INPUT_REQUIRED
        assert await task.send("3") == question.id
        await task.wait(60)
        assert task.result == ["begin", 3]


async def test_e12_a_shell_job_without_input_gets_no_messages(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("shell").run(f"sleep {unique_seconds()}")
        with pytest.raises(NobodyAsked):
            await task.send("hello")
        await task.stop(force=True)


# From a task


async def test_e12_a_script_tells_its_session_something_and_goes_on(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("tell")
        line = (
            f"{PROGRAM} tell 'half is done'; "
            """echo '{"tell": "two\\u0007 lines"}' >>"$BACKBURNER_REPORT"; """
            """echo '{"tell": 3}' >>"$BACKBURNER_REPORT"; """
            """echo '{"tell": "half is done"}' >>"$BACKBURNER_REPORT" """
        )
        task = await (await session.run(line)).wait(60)
        assert task.exit_code == 0
        found = await told(session, 3)
        assert [each.record.data["text"] for each in found] == [
            "half is done",
            "two  lines",
            "half is done",
        ]
        assert [each.record.kind for each in await session.told()][-1] is SignalKind.COMPLETED
        said = [event.data.get("detail") async for event in task.events()]
        assert "report: what is told is a text" in said


async def test_e12_what_was_told_is_told_once_though_everything_is_killed(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("tell")
        line = (
            """for n in 1 2 3 4 5; do echo "{\\"tell\\": \\"$n\\"}" >>"$BACKBURNER_REPORT"; """
            f"""done; {PROGRAM} ask on"""
        )
        task = await session.run(line)
        await told(session, 2)
        kill_all_of_ours(home)
        await open_questions(task)
        await task.send("yes")
        await task.wait(60)
        found = await told(session, 5)
        assert [each.record.data["text"] for each in found] == ["1", "2", "3", "4", "5"]


async def test_e12_a_script_may_say_what_an_answer_has_to_be(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        schema = '{"enum": ["main", "dev"]}'
        task = await bb.session("schema").run(f"{PROGRAM} ask --schema '{schema}' 'Which branch?'")
        (question,) = await open_questions(task)
        assert question.schema == {"enum": ["main", "dev"]}
        document = (await task.refresh()).document()["question"]
        assert document["schema"] == {"enum": ["main", "dev"]}
        with pytest.raises(UsageError, match=r"'trunk' is not one of .*give one of main, dev"):
            await task.send("trunk")
        assert (await task.refresh()).state is State.INPUT_REQUIRED
        await task.send("dev")
        await task.wait(60)
        assert (task.exit_code, (await task.output()).text) == (0, "dev\n")


async def test_e12_a_schema_that_cannot_be_used_is_refused_to_who_asks(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        schema, words = '{"$ref": "http://x/"}', "names something elsewhere"
        by_hand = f'{{"ask": {{"id": "q", "question": "?", "schema": {schema}}}}}'
        line = (
            f"{PROGRAM} ask --schema '{schema}' '?'; "
            f"""echo '{by_hand}' >>"$BACKBURNER_REPORT"; """
            """refused="${BACKBURNER_REPORT%/*}/answers/q.refused"; """
            """until [ -e "$refused" ]; do sleep 0.05; done; cat "$refused" """
        )
        task = await (await bb.session("refused").run(line)).wait(60)
        assert (await task.output()).text.count(words) == 2
        assert await task.questions() == []
        said = [str(event.data.get("detail")) async for event in task.events()]
        assert any(words in each for each in said), "the timeline says it too"


async def test_e12_a_python_task_asks_for_a_value(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("pick").call(f"{FUNCTIONS}:pick")
        await open_questions(task)
        with pytest.raises(UsageError, match="less than the minimum"):
            await task.send("0")
        await task.send("7")
        assert (await task.wait(60)).result == 7


async def test_e8_one_signal_at_the_end_says_what_ended_and_where_its_files_are(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:

        @bb.tool(background=True, display_name="Counting")
        async def count(to: int) -> int:
            return to

        session = bb.session("e8")
        task = await (await session.spawn("count", {"to": 3})).wait(30)
        silent = await session.spawn("count", {"to": 4}, signal_on_completion=False)
        await silent.wait(30)
        assert silent.document()["signal"] is None
        (signal,) = await session.told()
        document = signal.document()
        assert (document["task"], document["kind"]) == (task.id, "completed")
        data = document["data"]
        assert (data["title"], data["tool"], data["state"]) == ("Counting", "count", "succeeded")
        paths = task.document()["paths"]
        assert document["paths"] == {"log": paths["log"], "result": paths["result"]}


async def test_e12_a_task_that_wakes_on_activity_tells_what_it_does(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        go_on = asyncio.Event()

        @bb.tool(background=True)
        async def working(context: Context) -> None:
            context.status("halfway")
            await go_on.wait()

        session = bb.session("activity")
        task = await session.spawn("working", wake="on_activity")
        (said,) = await told(session)
        assert said.text.endswith(f"({task.id}) says: halfway")
        go_on.set()
        await task.wait(30)


# The end of a session


async def test_d8_at_its_end_a_session_stops_its_calls_or_keeps_them(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        go_on = asyncio.Event()

        @bb.tool(background=True)
        async def slow() -> str:
            await go_on.wait()
            return "done"

        for keep in (False, True):
            session = bb.session(f"end-{keep}")
            spawned = await session.spawn("slow")
            parked = (await session.invoke("slow", budget=0.01)).task
            shell = await session.run(f"sleep {unique_seconds()}")
            assert isinstance(parked, Task)
            assert not await session.ended()
            await session.end(keep=keep)
            assert await session.ended()
            expected = State.RUNNING if keep else State.CANCELED
            for task in (spawned, parked):
                assert (await task.refresh()).state is expected
            if keep:
                go_on.set()
            for task in (spawned, parked):
                await task.wait(30)
            assert (await shell.refresh()).state in (State.QUEUED, State.RUNNING)
            await shell.stop(force=True)
            signals = await session.told()
            assert {(each.record.state, each.record.reason) for each in signals} == {
                (SignalState.DROPPED, "the session was deleted")
            }


async def test_d8_at_its_end_a_session_has_no_schedules_any_more(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("scheduled")
        schedule = await session.schedule("0 0 1 1 *", "true")
        kept = bb.session("scheduled-kept")
        other = await kept.schedule("0 0 1 1 *", "true")
        await session.end()
        await kept.end(keep=True)
        assert (await schedule.refresh()).state == "canceled"
        assert (await other.refresh()).state == "active"
        await other.cancel()
