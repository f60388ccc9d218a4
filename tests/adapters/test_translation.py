"""X7: in every framework a model is offered the tools of the session, and told what goes wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner
from tests.adapters.programs import FRAMEWORKS, Framework, offered, run_program
from tests.openai_server import Asked, Calls, Says

# With the long ones: each starts a program that loads a whole framework.
pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("frameworks")]

ONE_TURN = Path(__file__).with_name("one_turn.py")

NAMES_OF_FRAMEWORKS = ("self", "config", "run_manager", "callbacks", "ctx", "context", "input")
"""Parameters of their own functions: in the arguments of a tool they mean nothing."""

each_framework = pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda each: each.program)


class Scripted:
    """A model that makes these calls, one after the other, and keeps what it was sent."""

    def __init__(self, *calls: tuple[str, dict[str, Any] | str]) -> None:
        self.calls = list(calls)
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Says | Calls:
        self.asked.append(asked)
        if not self.calls:
            return Says("Done.")
        name, arguments = self.calls.pop(0)
        return Calls(((offered(asked, name) or name, arguments),))


def turn(framework: Framework, folder: Path, model: Scripted, dialect: str | None = None) -> None:
    """One turn, which ends well."""
    given = [framework.program, *([dialect] if dialect else [])]
    run = run_program(ONE_TURN, framework, folder, model, *given)
    assert (run.returncode, run.stdout, run.stderr) == (0, "Done.\n", "")


def documents(asked: Asked) -> dict[str, tuple[str, list[str]]]:
    """Of the tools that are ours: what the model reads of each."""
    found: dict[str, tuple[str, list[str]]] = {}
    for given in asked.body["tools"]:
        tool: dict[str, Any] = given.get("function", given)
        schema: dict[str, Any] = tool.get("parameters") or tool.get("input_schema") or {}
        name = tool["name"].removeprefix("mcp__backburner__")
        if name != tool["name"] or "mcp__" not in json.dumps(asked.body["tools"]):
            found[name] = (tool["description"], sorted(schema["properties"]))
    return found


@each_framework
@pytest.mark.parametrize("dialect", [None, "bg_task"], ids=["ours", "bg_task"])
async def test_x7_a_model_is_offered_the_tools_of_the_session(
    framework: Framework, dialect: str | None, home: Path, tmp_path: Path
) -> None:
    model = Scripted()
    turn(framework, tmp_path, model, dialect)
    async with Backburner.open() as bb:
        offers = bb.session("test").toolset(dialect).offers
    wanted = {
        offer.name: (offer.description, sorted(each.name for each in offer.parameters))
        for offer in offers
    }
    assert documents(model.asked[0]) == wanted


@each_framework
def test_x7_what_goes_wrong_is_told_to_the_model_and_ends_nothing(
    framework: Framework, home: Path, tmp_path: Path
) -> None:
    model = Scripted(
        ("background_output", {"id": "bg_nothing"}),
        ("background_run", {"command": "true", "tool": "echo"}),
        ("background_list", dict.fromkeys(NAMES_OF_FRAMEWORKS, 1)),
        ("background_list", {"active": True}),
    )
    turn(framework, tmp_path, model)
    assert len(model.asked) == 5
    _, missing, both, hostile, listed = (json.dumps(asked.body) for asked in model.asked)
    assert "bg_nothing" in missing
    assert "give exactly one of command, tool and prompt" in both
    assert "No background tasks" not in hostile
    assert "No background tasks in this session." in listed
    if framework.wire == "anthropic":  # it has a mark for errors
        assert missing.count('"is_error": true') == 1
        assert listed.count('"is_error": true') == 3


@each_framework
async def test_x1_calls_made_at_once_are_answered_each_and_what_is_to_be_told_comes_once(
    framework: Framework, home: Path, tmp_path: Path
) -> None:
    async with Backburner.open() as bb:
        await (await bb.session("test").run("true", title="build")).wait(30)
    asked: list[Asked] = []

    def model(request: Asked) -> Says | Calls:
        asked.append(request)
        names = ("background_list", "background_output", "background_list")
        given: tuple[dict[str, Any], ...] = ({}, {"id": "bg_nothing"}, {"active": True})
        calls = [
            (offered(request, name) or name, each) for name, each in zip(names, given, strict=True)
        ]
        return Says("Done.") if len(asked) > 1 else Calls(tuple(calls))

    run = run_program(ONE_TURN, framework, tmp_path, model, framework.program)
    assert (run.returncode, run.stdout, run.stderr) == (0, "Done.\n", "")
    said = json.dumps(asked[1].body)
    assert said.count("[completed] build") == 1
    assert said.count("no task 'bg_nothing' in this session") == 1
    assert said.count("No background tasks in this session.") == 1


# With Anthropic arguments are objects, and LangChain itself refuses what is none.
@pytest.mark.parametrize("framework", FRAMEWORKS[:2], ids=lambda each: each.program)
def test_x7_arguments_that_are_no_object_end_nothing(
    framework: Framework, home: Path, tmp_path: Path
) -> None:
    written = ("[1, 2]", '{"active": tr', '"active"')
    model = Scripted(*(("background_list", text) for text in written))
    turn(framework, tmp_path, model)
    assert len(model.asked) == 4
    assert "No background tasks" not in json.dumps([asked.body for asked in model.asked])
