"""X1, X3, X7: what a model is offered, what it may give, and what rides along with an answer."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner import (
    Backburner,
    Context,
    InvalidArguments,
    SignalState,
    StoreBusy,
    UsageError,
    tool,
)
from backburner.store.protocol import Scope
from backburner.tools.arguments import checked
from backburner.tools.canonical import Canonical
from backburner.tools.seen import Answer, Offer, Parameter
from backburner.tools.toolset import Toolset

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

NAMES = [
    "background_run",
    "background_list",
    "background_output",
    "background_stop",
    "background_send",
    "background_schedule",
]


async def _nothing(_: dict[str, Any]) -> Answer:
    return Answer("")


OFFER = Offer(
    "tool",
    "Does it.",
    (
        Parameter("text", "string", required=True),
        Parameter("count", "integer"),
        Parameter("share", "number"),
        Parameter("flag", "boolean"),
        Parameter("args", "object"),
        Parameter("kind", "string", choices=("a", "b")),
    ),
    _nothing,
)


@pytest.mark.parametrize("form", ["openai", "anthropic", "mcp"])
async def test_x7_every_form_names_all_tools_and_stays_small(home: Path, form: Any) -> None:
    async with Backburner.open(home) as bb:
        schemas = bb.session("s").toolset().schemas(form)
        named = [each["function"]["name"] if form == "openai" else each["name"] for each in schemas]
        assert named == NAMES
        assert len(json.dumps(schemas)) < 6000
        with pytest.raises(UsageError, match="openai, anthropic or mcp"):
            bb.session("s").toolset().schemas("yaml")  # type: ignore[arg-type]


async def test_x7_openai_schemas_are_clean_in_strict_mode(home: Path) -> None:
    async with Backburner.open(home) as bb:
        for each in bb.session("s").toolset().schemas("openai"):
            parameters = each["function"]["parameters"]
            assert each["function"]["strict"] is True
            assert parameters["additionalProperties"] is False
            assert parameters["required"] == list(parameters["properties"])
            for schema in parameters["properties"].values():
                assert schema["type"] not in ("object", ["object", "null"])


async def test_x7_mcp_schemas_say_what_a_tool_may_do(home: Path) -> None:
    async with Backburner.open(home) as bb:
        hints = {
            each["name"]: each["annotations"] for each in bb.session("s").toolset().schemas("mcp")
        }
        assert hints["background_list"]["readOnlyHint"]
        assert hints["background_stop"]["destructiveHint"]
        assert not hints["background_run"]["readOnlyHint"]


def test_arguments_are_taken_as_models_write_them() -> None:
    given = {
        "text": "x",
        "count": "3",
        "share": 1,
        "flag": "True",
        "args": '{"a": 1}',
        "kind": None,
    }
    assert checked(OFFER, given) == {
        "text": "x", "count": 3, "share": 1, "flag": True, "args": {"a": 1},
    }  # fmt: skip
    assert checked(OFFER, '{"text": "x"}') == {"text": "x"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "text: it is missing"),
        ({"text": 5}, "text: it has to be a text, and not 5"),
        ({"text": "x", "count": 1.5}, "count: it has to be a whole number"),
        ({"text": "x", "count": True}, "count: it has to be a number"),
        ({"text": "x", "share": float("nan")}, "share: it has to be a number"),
        ({"text": "x", "share": 10**400}, "share: it has to be a number"),
        ({"text": "x", "flag": 1}, "flag: it has to be true or false"),
        ({"text": "x", "args": [1]}, "args: it has to be an object"),
        ({"text": "x", "args": "{"}, "args: it has to be a JSON object"),
        ({"text": "x", "kind": "c"}, "kind: 'c' is none of a, b"),
        ({"text": "x", "more": 1}, "'more': no such argument"),
        ({"text": "\ud800"}, "text: it is no valid text"),
        ({"text": "x" * (1024 * 1024 + 1)}, "text: it is longer than 1 MiB"),
        ([1], "the arguments are no object"),
        ("{", "the arguments are no JSON"),
    ],
)
def test_arguments_that_do_not_fit_are_explained(given: Any, said: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        checked(OFFER, given)
    assert said in str(raised.value)
    assert len(str(raised.value)) < 600


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON | st.dictionaries(st.sampled_from(["text", "count", "args", "kind"]), JSON))
def test_whatever_a_model_gives_is_taken_or_explained(given: Any) -> None:
    try:
        taken = checked(OFFER, given)
    except InvalidArguments:
        return
    assert isinstance(taken["text"], str)


async def test_x1_signals_ride_along_and_count_as_delivered_with_the_next_call(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        tools = session.toolset()
        started = await tools.call("background_run", {"command": "exit 3", "title": "build"})
        await (await session.task(started.data["id"])).wait(30)

        async def state() -> SignalState:
            (signal,) = await session.told()
            return signal.record.state

        assert await state() is SignalState.PENDING
        first = await tools.call("background_list")
        assert "[failed] build" in first.text
        assert first.data["signals"][0]["task"] == started.data["id"]
        assert await state() is SignalState.CLAIMED
        second = await tools.call("background_list")
        assert "[failed]" not in second.text
        assert await state() is SignalState.DELIVERED


async def test_x1_a_client_that_does_not_come_back_leaves_its_signals_to_the_next(
    home: Path,
) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        gone = session.toolset()
        started = await gone.call("background_run", {"command": "true"})
        await (await session.task(started.data["id"])).wait(30)
        first = await gone.call("background_list")
        await gone.close()
        again = await session.toolset().call("background_list")
        assert again.data["signals"] == first.data["signals"], "under the same key"


async def test_whatever_goes_wrong_is_an_answer(home: Path) -> None:
    async with Backburner.open(home) as bb:
        tools = bb.session("s").toolset()
        calls: list[tuple[str, dict[str, Any], str]] = [
            ("nothing", {}, "there is no tool 'nothing'"),
            ("background_run", {}, "exactly one of command, tool and prompt"),
            ("background_run", {"command": "a", "prompt": "b"}, "exactly one"),
            ("background_run", {"command": "a", "args": {}}, "args go with a tool"),
            ("background_run", {"tool": "nothing"}, "there is no tool 'nothing'"),
            ("background_run", {"command": "true", "cwd": "/no/such/folder"}, "no folder"),
            ("background_output", {"id": "bg_none"}, "no task 'bg_none'"),
            ("background_stop", {"id": 5}, "it has to be a text"),
            ("background_send", {"id": "bg_none", "text": "x"}, "no task"),
            ("background_schedule", {"action": "add", "command": "x"}, "when is missing"),
            ("background_schedule", {"action": "dance"}, "none of add, list"),
            ("background_schedule", {"action": "pause"}, "give its id"),
        ]
        for name, arguments, said in calls:
            answer = await tools.call(name, arguments)
            assert answer.is_error, (name, arguments, answer)
            assert said in answer.text


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


endless: dict[str, Any] = {}
endless["endless"] = endless

HOSTILE: list[tuple[Any, Any, str]] = [
    (["x"], {}, "there is no tool ['x']"),
    (nested(5000), {}, "there is no tool"),
    (None, {}, "there is no tool None"),
    ("background_list", nested(5000), "the arguments are no object"),
    ("background_list", {("a", "b"): 1}, "no such argument"),
    ("background_list", {10**5000: 1}, "int: no such argument"),
    ("background_run", {"command": nested(5000)}, "command: it has to be a text"),
    ("background_run", {"tool": "give", "args": {"x": nested(900)}}, "args: "),
    ("background_run", {"tool": "give", "args": endless}, "args: the arguments are no JSON"),
    ("background_run", {"tool": "give", "args": {"x": float("nan")}}, "args: the arguments are no"),
    ("background_run", {"tool": "give", "args": '{"x": NaN}'}, "args: it has to be a JSON object"),
    ("background_run", '{"tool": "give", "args": {"x": Infinity}}', "the arguments are no JSON"),
    ("background_run", {"tool": "give", "args": {1: 2}}, "args: arguments are given by name"),
    ("background_run", {"tool": "give", "args": {"x": object()}}, "args: the arguments are no"),
    ("background_run", {"tool": "give", "args": {"x": "y" * 2**20}}, "longer than 1024 KiB"),
    ("background_run", "[" * 100_000, "the arguments are no JSON"),
]


@pytest.mark.parametrize(("name", "arguments", "said"), HOSTILE)
async def test_whatever_a_model_writes_is_answered(
    home: Path, name: Any, arguments: Any, said: str
) -> None:
    async with Backburner.open(home) as bb:
        bb.registry.add(give)
        tools = bb.session("s").toolset()
        answer = await tools.call(name, arguments)
        assert answer.is_error
        assert said in answer.text
        assert len(answer.text) < 600


@pytest.mark.parametrize("schedule", [{1: 2}, {"cron_expression": ["*"]}, {"x" * 5000: "y"}])
async def test_e9_a_schedule_that_is_none_is_answered(home: Path, schedule: Any) -> None:
    async with Backburner.open(home) as bb:
        bb.registry.add(give)
        tools = bb.session("s").toolset(dialect="spawn_background")
        given = {"tool": "give", "args": {"x": 1}, "schedule": schedule}
        answer = await tools.call("spawn_background", given)
        assert answer.is_error
        assert answer.text.startswith(("schedule: ", "spawn_background: schedule: "))


@tool(background=True)
def give(x: Any) -> None:
    """Takes anything."""


async def test_e1_what_we_did_not_foresee_is_an_answer_with_a_reference(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    async def broken(given: dict[str, Any]) -> Answer:
        raise ZeroDivisionError(f"at 10.0.0.3 with {given['text']}")

    async def fine(given: dict[str, Any]) -> Answer:
        done.append(given["text"])
        return Answer("done")

    class Broken(Toolset):
        async def accompany(self, answer: Answer) -> Answer:
            raise RuntimeError("nothing rides along today")

    parameters = (Parameter("text", "string"),)
    offers = [Offer("broken", "", parameters, broken), Offer("fine", "", parameters, fine)]
    async with Backburner.open(home) as bb:
        tools = Toolset(offers, bb.store, Scope("local", "s"))
        with caplog.at_level(logging.ERROR, logger="backburner.tools"):
            answer = await tools.call("broken", {"text": "abc"})
            assert (answer.is_error, answer.data["error"]["code"]) == (True, "internal")
            assert answer.text.startswith("an internal error happened in broken (reference ie_")
            assert "10.0.0.3" not in str(answer)
            logged = caplog.records[0].getMessage()
            assert answer.text.partition("reference ")[2].rstrip(")") in logged
            assert "ZeroDivisionError: at 10.0.0.3 with abc" in logged
            other = Broken(offers, bb.store, Scope("local", "s"))
            answer = await other.call("fine", {"text": "abc"})
    assert (answer.text, answer.is_error, done) == ("done", False, ["abc"]), "what is done is done"
    assert "nothing rides along today" in caplog.records[1].getMessage()


async def test_x1_what_a_parallel_call_was_told_is_not_forgotten(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")

        async def told(title: str) -> None:
            await (await session.run("true", title=title)).wait(30)

        await told("first")
        tools = session.toolset()
        assert "first" in (await tools.call("background_list")).text
        await told("second")
        store = bb.store
        acknowledge = store.acknowledge
        entered, go = asyncio.Event(), asyncio.Event()

        async def slowly(*given: Any) -> Any:
            entered.set()
            await go.wait()
            return await acknowledge(*given)

        store.acknowledge = slowly  # type: ignore[method-assign]
        slow = asyncio.create_task(tools.heard())
        await entered.wait()
        assert "second" in (await tools.call("background_list")).text, "a call at the same time"
        go.set()
        await slow
        await tools.heard()
        states = {signal.record.state for signal in await session.told()}
        assert states == {SignalState.DELIVERED}


async def test_x1_what_could_not_be_acknowledged_is_acknowledged_later(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        tools = session.toolset()
        await (await session.run("true")).wait(30)
        await tools.call("background_list")
        acknowledge = bb.store.acknowledge

        async def cannot(*_: Any) -> Any:
            raise StoreBusy("not now")

        bb.store.acknowledge = cannot  # type: ignore[method-assign]
        await tools.heard()
        bb.store.acknowledge = acknowledge  # type: ignore[method-assign]
        await tools.heard()
        (signal,) = await session.told()
        assert signal.record.state is SignalState.DELIVERED


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
        while "compiling file 3000" not in (await task.output(max_chars=None)).text:
            await session.tasks()
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


async def test_a_schedule_through_the_tool_set(home: Path) -> None:
    async with Backburner.open(home) as bb:
        tools = bb.session("s").toolset()
        added = await tools.call(
            "background_schedule",
            {"action": "add", "when": "*/10 * * * *", "command": "true", "timezone": "Asia/Tokyo"},
        )
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
