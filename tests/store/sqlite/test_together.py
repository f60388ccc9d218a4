"""What waits together shares its statements: how many, in which order, and one that fails."""

import asyncio
from collections.abc import Sequence

import pytest

from backburner.model.ending import Ending
from backburner.model.errors import LimitReached
from backburner.model.states import Kind
from backburner.model.task import NewTask, Place
from backburner.store.protocol import Scope
from backburner.store.sqlite.store import SqliteStore
from backburner.store.sqlite.together import Together, Waiting, groups
from backburner.store.sqlite.transaction import Statements

HERE = Place("boot", 1, 5, worker="wk_1")


def new(task_id: str, session: str = "s") -> NewTask:
    return NewTask(task_id, "local", session, Kind.TOOL, "title", {"tool": "t"})


def _nothing(_: Statements, orders: Sequence[str]) -> list[str]:
    return [*orders]


FIRST = Together(_nothing, subject=lambda order: order, turn=0)
SECOND = Together(_nothing, subject=lambda order: order, turn=1)


def grouped(*wanted: tuple[Together[str, str] | None, str]) -> list[str]:
    made = groups([Waiting(kind, order) for kind, order in wanted])
    return ["".join(each.order for each in group) for group in made]


def test_those_of_a_kind_are_one_group_up_to_what_is_done_alone() -> None:
    assert grouped(
        (SECOND, "a"), (FIRST, "b"), (SECOND, "c"), (None, "x"), (None, "y"), (SECOND, "d")
    ) == ["b", "ac", "x", "y", "d"]


def test_what_concerns_the_same_is_done_one_after_the_other() -> None:
    assert grouped((FIRST, "a"), (FIRST, "b"), (FIRST, "a"), (FIRST, "c")) == ["ab", "ac"]


def test_a_group_has_a_bound() -> None:
    wanted = [(FIRST, chr(0x4E00 + number)) for number in range(150)]
    assert [len(group) for group in grouped(*wanted)] == [64, 64, 22]


async def test_e3_an_end_leaves_its_room_to_the_begin_that_waits_with_it(
    store: SqliteStore,
) -> None:
    await store.begin(new("bg_1"), HERE, limit=1)
    (_, fresh), ended = await asyncio.gather(
        store.begin(new("bg_2"), HERE, limit=1), store.finish("bg_1", 1, Ending.succeeded())
    )
    assert fresh
    assert ended is not None


@pytest.mark.parametrize("session", ["caf\u00e9", "half\udcff", 'tab\tand "quote"'])
async def test_a_session_of_any_name_is_counted_and_told(store: SqliteStore, session: str) -> None:
    scope = Scope("local", session)
    await store.begin(new("bg_1", session), HERE, limit=1)
    with pytest.raises(LimitReached):
        await store.begin(new("bg_2", session), HERE, limit=1)
    assert await store.finish("bg_1", 1, Ending.succeeded()) is not None
    assert [task.id for task in await store.newest(scope, limit=5)] == ["bg_1"]
    assert len(await store.signals(scope)) == 1
