"""X1, X3, X7: what a model is offered, what it may give, and what rides along with an answer."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner import Backburner, Context, InvalidArguments, SignalState, UsageError
from backburner.tools.arguments import checked
from backburner.tools.canonical import Canonical
from backburner.tools.seen import Answer, Offer, Parameter

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
