"""A6, E2, X7: what holds for each dialect: no session, hostile calls, schemas, notes."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backburner import Backburner, BackburnerError, Session, UsageError, dialects
from backburner.dialects import DIALECTS, note
from backburner.model.states import State
from backburner.tools.dialects import offers_of, tasks
from backburner.tools.seen import Form
from tests.waiting import wait_until_async

NAMES = {
    "manage_bg_jobs": ["manage_bg_jobs"],
    "bg_task": ["BgTaskList", "BgTaskOutput", "BgTaskStop"],
    "check_background_tool": ["check_background_tool"],
    "spawn_background": ["spawn_background"],
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


def with_a_tool(bb: Backburner) -> Session:
    @bb.tool(background=True)
    async def crawl(pages: int = 1) -> None: ...

    return bb.session("s")


def test_x7_the_public_names_are_these() -> None:
    assert tuple(NAMES) == DIALECTS
    assert dialects.__all__ == [
        "DIALECTS", "BackgroundToolList", "BackgroundToolListEntry", "BackgroundToolStatus",
        "act_on", "note", "start_bg_task", "start_marked",
    ]  # fmt: skip


async def test_x7_each_dialect_has_its_tools_and_an_unknown_one_is_an_error(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = with_a_tool(bb)
        for dialect, names in NAMES.items():
            assert session.toolset(dialect=dialect).names == names
        with pytest.raises(UsageError, match="use manage_bg_jobs, bg_task"):
            session.toolset(dialect="klingon")


@pytest.mark.parametrize("form", ["openai", "anthropic", "mcp"])
async def test_x7_schemas_are_strict_and_small(home: Path, form: Form) -> None:
    async with Backburner.open(home) as bb:
        session = with_a_tool(bb)
        for dialect in DIALECTS:
            schemas = session.toolset(dialect=dialect).schemas(form)
            assert len(json.dumps(schemas)) < 2_500
            for schema in schemas:
                inner = schema["function"] if form == "openai" else schema
                assert inner["description"]
                arguments = inner[
                    {"openai": "parameters", "anthropic": "input_schema", "mcp": "inputSchema"}[
                        form
                    ]
                ]
                assert arguments["additionalProperties"] is False
                if form == "openai":
                    assert arguments["required"] == [*arguments["properties"]]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a6_e2_without_a_session_every_call_is_an_error(home: Path, dialect: str) -> None:
    offers = offers_of(dialect, None)
    assert [offer.name for offer in offers] == NAMES[dialect]
    for offer in offers:
        with pytest.raises(UsageError, match="there is no session here"):
            await offer.handler({})
    async with Backburner.open(home) as bb:
        for nameless in ("", cast("str", None)):
            with pytest.raises(BackburnerError, match="need a name"):
                bb.session(nameless)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_x7_whatever_a_model_gives_is_answered(
    shared_home: Path, data: st.DataObject
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = with_a_tool(bb)
        for dialect, names in NAMES.items():
            tools = session.toolset(dialect=dialect)
            offered = {offer.name: offer for offer in tools.offers}
            for name in names:
                keys = st.sampled_from([each.name for each in offered[name].parameters] or ["x"])
                arguments: Any = data.draw(JSON | st.dictionaries(keys, JSON))
                answer = await tools.call(name, arguments)
                assert answer.text
                assert len(answer.text) < 4_000


def test_d10_every_dialect_has_a_note_for_a_system_prompt() -> None:
    for dialect in DIALECTS:
        assert any(name in note(dialect) for name in NAMES[dialect])
        assert len(note(dialect)) < 1_200
    with pytest.raises(UsageError, match="use manage_bg_jobs"):
        note("klingon")


LISTS: list[tuple[str | None, str, dict[str, Any]]] = [
    (None, "background_list", {}),
    ("manage_bg_jobs", "manage_bg_jobs", {"action": "list"}),
    ("bg_task", "BgTaskList", {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "name", "arguments"), LISTS)
async def test_x3_a_list_of_many_is_short_and_has_what_runs(
    shared_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    dialect: str | None,
    name: str,
    arguments: dict[str, Any],
) -> None:
    monkeypatch.setattr(tasks, "_PAGE", 3)
    monkeypatch.setattr(tasks, "LISTED", 5)
    async with Backburner.open(shared_home) as bb:
        session = bb.session(f"many {dialect}")
        first = await session.run("sleep 3600", title="first")
        waiting = [await session.run("true", after=first.id) for _ in range(8)]

        async def runs() -> bool:
            return (await first.refresh()).state is State.RUNNING

        await wait_until_async(runs)
        answer = await session.toolset(dialect).call(name, arguments)
        assert [first.id in answer.text, waiting[0].id in answer.text] == [True, False]
        assert sum(task.id in answer.text for task in (first, *waiting)) == 5
        assert "\nand 4 more" in answer.text
        assert dialect is not None or f"waits for {first.id}" in answer.text
        assert len(next(iter(answer.data.values()))) == 9, "as data it is whole"
        for task in [*waiting, first]:
            await task.stop(force=True)
