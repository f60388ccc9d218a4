"""X7: what a model is offered, what it may give, and that whatever it gives is answered."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner import (
    Backburner,
    InvalidArguments,
    UsageError,
    tool,
)
from backburner.store.protocol import Scope
from backburner.tools.arguments import checked
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
            for name, schema in parameters["properties"].items():
                assert schema["type"] not in ("object", ["object", "null"])
                assert ("A JSON object, as text." in schema.get("description", "")) == (
                    name == "args"
                )


async def test_x7_mcp_schemas_say_what_a_tool_may_do(home: Path) -> None:
    async with Backburner.open(home) as bb:
        hints = {
            each["name"]: each["annotations"] for each in bb.session("s").toolset().schemas("mcp")
        }
        reads = ["background_list", "background_output"]
        assert [name for name, each in hints.items() if each["readOnlyHint"]] == reads
        assert [name for name, each in hints.items() if not each["destructiveHint"]] == reads
        anything = ["background_run", "background_send", "background_schedule"]
        assert [name for name, each in hints.items() if each["openWorldHint"]] == anything


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


async def test_whatever_goes_wrong_is_an_answer(home: Path) -> None:
    async with Backburner.open(home) as bb:
        tools = bb.session("s").toolset()
        calls: list[tuple[str, dict[str, Any], str]] = [
            ("nothing", {}, "there is no tool 'nothing'"),
            ("background_run", {}, "exactly one of command, tool and prompt"),
            ("background_run", {"command": "a", "prompt": "b"}, "exactly one"),
            ("background_run", {"command": "a", "args": {}}, "args go with a tool"),
            ("background_run", {"tool": "a", "cwd": "/"}, "cwd goes with a command"),
            ("background_run", {"tool": "nothing"}, "there is no tool 'nothing'"),
            ("background_run", {"command": "true", "cwd": "/no/such/folder"}, "no folder"),
            (
                "background_output",
                {"id": "bg_none"},
                "no task 'bg_none' in this session (background_list",
            ),
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


async def test_x6_an_answer_can_be_sent_whatever_a_job_has_written(home: Path) -> None:
    half = "\ud800"

    async def handler(_: dict[str, Any]) -> Answer:
        return Answer(f"a{half}", {"result": [half]})

    async with Backburner.open(home) as bb:
        tools = Toolset([Offer("odd", "", (), handler)], bb.store, Scope("ada", "chat"))
        answer = await tools.call("odd")
    assert (answer.text, answer.data) == ("a\ufffd", {"result": ["\ufffd"]})
