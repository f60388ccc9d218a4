"""D2 to D5, D10: checking calls that outlived their budgets."""

import asyncio
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from backburner import Backburner, Outcome, Session, State, Task
from backburner.tools.dialects.check_background_tool import (
    WAIT_S,
    BackgroundToolList,
    BackgroundToolListEntry,
    BackgroundToolStatus,
    clamped,
)
from backburner.tools.prompts import note
from backburner.tools.seen import Answer
from tests.faults.victims import unique_seconds

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

STATUS_FIELDS = {
    "type", "message", "session_id", "status", "tool", "background_id", "output", "waited_seconds",
}  # fmt: skip


async def check(session: Session, **arguments: Any) -> Answer:
    tools = session.toolset(dialect="check_background_tool")
    return await tools.call("check_background_tool", arguments)


class Gate:
    """A tool that waits until the test lets it end, and then does what the test says."""

    def __init__(self, bb: Backburner) -> None:
        self.open = asyncio.Event()
        self.ending: Any = {"pages": 3}

        @bb.tool
        async def crawl() -> Any:
            await self.open.wait()
            if isinstance(self.ending, Exception):
                raise self.ending
            return self.ending

    async def parked(self, session: Session) -> Task:
        """A call of it that has outlived its budget."""
        call = await session.invoke("crawl", budget=0.01)
        assert call.parked
        return call.task


def fields(answer: Answer) -> dict[str, Any]:
    data = {name: value for name, value in answer.data.items() if name != "signals"}
    assert data.keys() == STATUS_FIELDS == get_type_hints(BackgroundToolStatus).keys()
    return data


async def test_d3_a_call_that_goes_on_is_still_running(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")
        task = await gate.parked(session)
        answer = await check(session, background_id=task.id, wait_seconds=0.05)
        data = fields(answer)
        assert not answer.is_error
        assert data["type"] == "background_tool_status"
        assert (data["status"], data["tool"]) == ("still_running", "crawl")
        assert (data["session_id"], data["background_id"]) == ("s", task.id)
        assert data["output"] is None
        assert 0.05 <= data["waited_seconds"] < 30
        assert "do not call it again" in data["message"]
        gate.open.set()


async def test_d3_a_call_that_ends_while_it_is_waited_for_gives_its_result(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")
        task = await gate.parked(session)
        waiting = asyncio.create_task(check(session, background_id=task.id))
        gate.open.set()
        answer = await asyncio.wait_for(waiting, 30)
        data = fields(answer)
        assert (data["status"], data["output"]) == ("completed", {"pages": 3})
        assert 0 <= data["waited_seconds"] < 30
        assert '{"pages": 3}' in answer.text


async def test_d5_reading_a_result_does_not_destroy_it(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")
        task = await gate.parked(session)
        gate.open.set()
        await task.wait(30)
        first = fields(await check(session, background_id=task.id))
        assert first["waited_seconds"] == 0
        for _ in range(3):
            assert fields(await check(session, background_id=task.id)) == first
    async with Backburner.open(home) as bb:
        again = fields(await check(bb.session("s"), background_id=task.id))
        assert again == first, "not after a restart either"


async def test_d3_success_false_is_an_error_with_its_output(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")
        task = await gate.parked(session)
        gate.ending = Outcome(success=False, summary="too few pages", result={"pages": 0})
        gate.open.set()
        answer = await check(session, background_id=task.id)
        assert answer.is_error
        data = fields(answer)
        assert (data["status"], data["output"]) == ("error", {"pages": 0})
        assert "too few pages" in data["message"]


async def test_d3_an_exception_is_an_error_with_its_type_and_text(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")
        task = await gate.parked(session)
        gate.ending = KeyError("url")
        gate.open.set()
        answer = await check(session, background_id=task.id)
        data = fields(answer)
        assert (data["status"], data["output"]) == ("error", "KeyError: 'url'")
        assert "KeyError: 'url'" in data["message"]
        assert answer.is_error


@pytest.mark.parametrize(
    ("given", "waits"), [(-1, 0), (0, 0), (59.5, 59.5), (540, 540), (541, 540), (10**300, 540)]
)
def test_d3_waits_are_clamped_to_0_to_540(given: float, waits: float) -> None:
    assert clamped(given) == waits
    assert WAIT_S == 60


async def test_d3_a_wait_of_less_than_nothing_is_none(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")
        task = await gate.parked(session)
        for seconds in (-60, 0):
            data = fields(await check(session, background_id=task.id, wait_seconds=seconds))
            assert data["status"] == "still_running"
            assert data["waited_seconds"] < 5
        gate.open.set()


async def test_d3_it_has_no_budget_and_is_none_of_the_tools_that_are_parked(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")
        await gate.parked(session)
        assert "check_background_tool" not in bb.registry
        (offer,) = session.toolset(dialect="check_background_tool").offers
        assert [each.name for each in offer.parameters] == [
            "background_id", "wait_seconds", "cancel", "list",
        ]  # fmt: skip
        assert not any(each.required for each in offer.parameters)
        gate.open.set()


async def test_d4_cancel_wins_over_wait(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")
        task = await gate.parked(session)
        answer = await asyncio.wait_for(
            check(session, background_id=task.id, wait_seconds=540, cancel=True), 30
        )
        data = fields(answer)
        assert (data["status"], data["output"], data["waited_seconds"]) == ("cancelled", None, 0)
        assert not answer.is_error
        assert (await task.refresh()).state is State.CANCELED
        assert fields(await check(session, background_id=task.id))["status"] == "cancelled"


async def test_d4_one_that_ended_just_before_gives_its_real_result(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")
        task = await gate.parked(session)
        gate.open.set()
        await task.wait(30)
        for mode in ("normal", "dry_run"):
            answer = await check(bb.session("s", mode=mode), background_id=task.id, cancel=True)
            data = fields(answer)
            assert (data["status"], data["output"]) == ("completed", {"pages": 3})


async def test_d4_in_a_dry_run_nothing_is_cancelled(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")
        task = await gate.parked(session)
        dry = bb.session("s", mode="dry_run")
        data = fields(await check(dry, background_id=task.id, cancel=True))
        assert data["status"] == "cancelled"
        assert data["message"].startswith("[dry-run]")
        assert (await task.refresh()).state is State.RUNNING
        assert (await check(dry, background_id="bg_none", cancel=True)).is_error
        plan = await check(bb.session("s", mode="plan"), background_id=task.id, cancel=True)
        assert plan.data["error"]["code"] == "not_allowed"
        gate.open.set()
        assert (await task.wait(30)).state is State.SUCCEEDED


async def test_d5_a_list_has_every_parked_call_of_the_session(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s")

        @bb.tool(background=True)
        async def spawned() -> None: ...

        done = await gate.parked(session)
        gate.open.set()
        await done.wait(30)
        gate.open.clear()
        goes_on = await gate.parked(session)
        await session.spawn("spawned")
        await gate.parked(bb.session("other"))
        answer = await check(session, list=True)
        data = {name: value for name, value in answer.data.items() if name != "signals"}
        assert data.keys() == get_type_hints(BackgroundToolList).keys()
        assert (data["type"], data["session_id"]) == ("background_tool_list", "s")
        assert data["message"] in answer.text
        for each in data["tasks"]:
            assert each.keys() == get_type_hints(BackgroundToolListEntry).keys()
            assert each.keys() == {"background_id", "tool", "age_seconds", "done"}
            assert each["tool"] == "crawl"
            assert 0 <= each["age_seconds"] < 60
            assert each["background_id"] in answer.text
        assert [(each["background_id"], each["done"]) for each in data["tasks"]] == [
            (goes_on.id, False), (done.id, True),
        ]  # fmt: skip
        gate.open.set()


async def test_d5_a_list_without_any_is_a_plain_sentence(home: Path) -> None:
    async with Backburner.open(home) as bb:
        answer = await check(bb.session("s"), list=True)
        assert answer.text == "No call of this session was parked."
        assert answer.data["tasks"] == []


async def test_d3_only_parked_calls_of_this_session_are_known(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate, session = Gate(bb), bb.session("s", owner="ada")
        task = await gate.parked(session)
        shell = await session.run(f"sleep {unique_seconds()}", title="hidden")
        none = await check(session, background_id="bg_0000000000000000")
        assert none.is_error
        for other, found in (
            (bb.session("t", owner="ada"), task),
            (bb.session("s", owner="bob"), task),
            (session, shell),
        ):
            for cancel in (False, True):
                answer = await check(other, background_id=found.id, cancel=cancel)
                assert answer.data["error"]["code"] == "not_found"
                assert answer.text == none.text.replace("bg_0000000000000000", found.id)
        assert not (await shell.refresh()).state.terminal
        await shell.stop(force=True)
        gate.open.set()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "background_id is missing (list=true shows every parked call of this session)"),
        ({"background_id": None}, "background_id is missing"),
        ({"cancel": True}, "background_id is missing"),
        ({"background_id": 7}, "background_id: it has to be a text"),
        ({"background_id": ""}, "'' is not found in this session"),
        ({"background_id": "x" * 900_000}, "is not found in this session"),
        ({"background_id": "bg_x", "wait_seconds": "long"}, "wait_seconds: it has to be a number"),
        ({"background_id": "bg_x", "wait_seconds": float("inf")}, "wait_seconds: it has to be"),
        ({"background_id": "bg_x", "cancel": "perhaps"}, "cancel: it has to be true or false"),
        ({"list": 1}, "list: it has to be true or false"),
        ({"background_id": "bg_x", "task": "y"}, "'task': no such argument"),
    ],
    ids=str,
)
async def test_d3_bad_input_is_an_error_that_says_what_is_wrong(
    home: Path, arguments: dict[str, Any], text: str
) -> None:
    async with Backburner.open(home) as bb:
        answer = await check(bb.session("bad"), **arguments)
        assert answer.is_error
        assert text in answer.text
        assert len(answer.text) < 400


def test_d10_a_note_explains_the_life_of_a_parked_call() -> None:
    text = note("check_background_tool")
    for words in (
        "time budget", '"type": "background"', "background_id", "no error", "check_background_tool",
        "540", "cancel=true", "list=true", "does not use it up", "told when",
    ):  # fmt: skip
        assert words in text
    assert len(text) < 1_200
