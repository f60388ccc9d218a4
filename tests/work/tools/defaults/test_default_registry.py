"""E13: which tools every agent may have, and those of them that need nothing from outside."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner import Context, InvalidArguments, ToolError
from backburner.work.tools.defaults import default_registry
from backburner.work.tools.nowhere import Nowhere

REGISTRY = default_registry()
NAMES = {
    *("get_current_time", "echo", "report_progress", "add", "subtract", "multiply", "divide"),
    *("get_weather", "get_forecast", "write_todos", "read_file", "write_file", "edit_file"),
    *("list_directory", "grep_files", "delete_file", "stat_file", "web_fetch"),
}


async def result(name: str, /, **arguments: Any) -> Any:
    return (await REGISTRY.execute(name, arguments)).result


def test_e13_the_tools_are_these() -> None:
    assert set(REGISTRY.names()) == NAMES
    assert default_registry() is not default_registry()


def test_e13_what_a_session_is_given_is_not_among_them() -> None:
    words = ("shell", "bash", "run", "spawn", "store", "memory", "python", "exec", "kv")
    assert not [name for name in REGISTRY.names() for word in words if word in name.split("_")]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_e13_every_tool_is_presented(name: str) -> None:
    tool = REGISTRY.get(name)
    assert tool.display_name[0].isupper()
    assert "_" not in tool.display_name
    assert tool.description.endswith(".")
    assert tool.parameters["additionalProperties"] is False
    assert tool.ours
    assert tool.reference is not None
    assert not (tool.readonly and tool.destructive)
    reads = name.startswith(("get_", "read_", "list_", "grep_", "stat_", "web_"))
    assert tool.readonly == (reads or name in {"echo", "add", "subtract", "multiply", "divide"})
    assert tool.destructive == (name in {"write_file", "edit_file", "delete_file"})


async def test_e13_the_time_is_told_in_any_zone() -> None:
    told = await result("get_current_time", timezone="Asia/Kolkata")
    moment = datetime.fromisoformat(told["time"])
    assert moment.utcoffset() == timedelta(hours=5, minutes=30)
    assert (await result("get_current_time"))["timezone"] == "UTC"


@pytest.mark.parametrize("zone", ["Mars/Base", "../../etc/passwd", "", "/etc/localtime", "Europe"])
async def test_e13_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(ToolError, match="no time zone"):
        await result("get_current_time", timezone=zone)


async def test_e13_echo_gives_back_what_it_was_given() -> None:
    assert await result("echo", text="hällo\n") == "hällo\n"


async def test_e13_sums_are_done() -> None:
    assert await result("add", a=1, b=2) == 3
    assert await result("subtract", a=1, b=0.5) == 0.5
    assert await result("multiply", a=10**20, b=10**20) == 10**40
    assert await result("divide", a=1, b=4) == 0.25


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("divide", 1, 0), ("divide", 1, 0.0), ("divide", 10**400, 1), ("multiply", 1e308, 10),
        ("add", 10**400, 0.5), ("multiply", 10**900, 10**900), ("subtract", -1e308, 1e308),
    ],
)  # fmt: skip
async def test_e13_what_has_no_number_is_said(name: str, a: float, b: float) -> None:
    with pytest.raises(ToolError, match=r"zero|too large"):
        await result(name, a=a, b=b)


numbers = st.integers() | st.floats()


@given(st.sampled_from(["add", "subtract", "multiply", "divide"]), numbers, numbers)
async def test_e13_sums_never_break(name: str, a: float, b: float) -> None:
    try:
        answer = await result(name, a=a, b=b)
    except (ToolError, InvalidArguments):
        return
    assert isinstance(answer, int | float)


async def test_e13_progress_reaches_the_sink() -> None:
    said: list[Any] = []

    class Sink(Nowhere):
        def progress(
            self, current: float, total: float | None, unit: str | None, label: str | None
        ) -> None:
            said.append((current, total, unit, label))

    outcome = await REGISTRY.execute(
        "report_progress", {"current": 3, "total": 7, "unit": "files"}, Context(Sink())
    )
    assert said == [(3, 7, "files", None)]
    assert outcome.result == "3 of 7 files"
    with pytest.raises(InvalidArguments):
        await result("report_progress", current=-1)


async def test_e13_a_list_of_what_is_to_do_comes_back_in_order() -> None:
    outcome = await REGISTRY.execute(
        "write_todos",
        {"todos": [{"content": " tests ", "status": "completed"}, {"content": "docs"}]},
    )
    assert outcome.summary == "1 of 2 done"
    assert outcome.result == {
        "todos": [
            {"content": "tests", "status": "completed"},
            {"content": "docs", "status": "pending"},
        ],
        "counts": {"pending": 1, "in_progress": 0, "completed": 1},
    }


@pytest.mark.parametrize(
    "todos",
    [[{"content": " "}], [{"content": "x", "status": "someday"}], [{}], [{"content": "x", "y": 1}]],
)
async def test_e13_a_list_that_makes_no_sense_is_refused(todos: list[Any]) -> None:
    with pytest.raises(InvalidArguments, match=r"todos\[0\]"):
        await result("write_todos", todos=todos)
