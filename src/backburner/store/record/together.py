"""Operations of one kind that are carried out as one: a few statements for all of them.

A statement costs its caller a turn at the interpreter's lock, whatever it does, so sixty ends that
wait together are recorded by six statements. Each is answered as if it had come alone.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, TypeVar

from backburner.store.record.transaction import Statements

Order = TypeVar("Order")
Answer = TypeVar("Answer")

_MOST = 64
"""In one statement: each brings its texts along, of which a result may have a megabyte."""


@dataclass(frozen=True, slots=True, eq=False)
class Together(Generic[Order, Answer]):
    """How many orders of one kind are carried out at once."""

    carry_out: Callable[[Statements, Sequence[Order]], Sequence[Answer | Exception]]
    """Answers each in its place: with an exception where that one is refused and has changed
    nothing. What it raises undoes all of them, and they are tried one by one."""
    subject: Callable[[Order], Hashable]
    """Two that concern the same are not carried out at once: the second has to see the first."""
    turn: int
    """Which kind goes first of those that wait beside each other. None of them is answered yet, so
    their callers cannot tell; an end before a begin leaves room for it."""
    whole: bool = False
    """Who waits for it is cancelled when it is done, and not before: something has to follow."""
    lazy: bool = False
    """It may be answered before it is on disk: what a crash of the database takes with it is done
    anew. Whatever is committed later is on disk after it."""


class Waiting:
    """Something that somebody wants done; with no kind it is done by itself."""

    __slots__ = ("kind", "order")

    def __init__(self, kind: Together[Any, Any] | None, order: Any) -> None:
        self.kind = kind
        self.order = order


Wanted = TypeVar("Wanted", bound=Waiting)


def groups(waiting: Iterable[Wanted]) -> Iterator[list[Wanted]]:
    """What is to be done at once, in its order."""
    for alone, stretch in groupby(waiting, key=_is_alone):
        if alone:
            for each in stretch:
                yield [each]
        else:
            for _, same in groupby(sorted(stretch, key=_turn), key=_turn):
                yield from _each_subject_once(same)


def _is_alone(waiting: Waiting) -> bool:
    return waiting.kind is None


def _turn(waiting: Waiting) -> int:
    assert waiting.kind is not None
    return waiting.kind.turn


def _each_subject_once(waiting: Iterable[Wanted]) -> Iterator[list[Wanted]]:
    group: dict[Hashable, Wanted] = {}
    for each in waiting:
        assert each.kind is not None
        subject = each.kind.subject(each.order)
        if subject in group or len(group) == _MOST:
            yield list(group.values())
            group = {}
        group[subject] = each
    yield list(group.values())
