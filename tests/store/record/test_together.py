"""What waits together shares its statements: how many, and in which order."""

from collections.abc import Sequence

from backburner.store.record.together import Together, Waiting, groups
from backburner.store.record.transaction import Statements


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
