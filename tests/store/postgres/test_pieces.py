"""How the record holds output: never more than a bounded log keeps, nor in many small pieces."""

from hypothesis import given
from hypothesis import strategies as st

from backburner.store.postgres.pieces import BLOCK, Growth, Held, growth

HEAD, TAIL = 2 * BLOCK, 5 * BLOCK
LARGEST = 64 * 1024 + 16 * 1024

sizes = st.one_of(st.integers(1, 300), st.integers(1, 5 * BLOCK), st.integers(1, 60 * BLOCK))


class Record:
    """What a database does with a growth."""

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}

    def put(self, grown: Growth) -> None:
        before = b""
        if grown.joins is not None:
            for at in sorted(at for at in self.pieces if at >= grown.joins):
                before += self.pieces.pop(at)
        for at, data in grown.new:
            assert at - len(before) not in self.pieces
            self.pieces[at - len(before)] = before + data
            before = b""
        if grown.drops is not None:
            first, end = grown.drops
            for at in [at for at in self.pieces if first <= at < end]:
                del self.pieces[at]


def written(total: int) -> bytes:
    """Every four bytes of it say where they are."""
    return b"".join(at.to_bytes(4, "big") for at in range(0, total + 4, 4))[:total]


@given(st.lists(sizes, min_size=1, max_size=200))
def test_x10_head_and_tail_are_there_after_every_copy_and_hardly_more(steps: list[int]) -> None:
    record, held, total, rewritten = Record(), Held(), 0, 0
    for step in steps:
        total += step
        log = written(total)
        grown = growth(
            "output",
            held,
            [(held.looks_from, log[held.looks_from :])],
            total,
            head=HEAD,
            tail=TAIL,
        )
        rewritten += sum(p.length for p in held.pieces if p.at >= (grown.joins or total))
        record.put(grown)
        held = grown.after
        for at, data in record.pieces.items():
            assert log[at : at + len(data)] == data, "in its place"
        assert {p.at: p.length for p in held.pieces} == {
            at: len(data) for at, data in record.pieces.items()
        }, "what is thought to be held is"
        there = bytearray(total)
        for at, data in record.pieces.items():
            there[at : at + len(data)] = b"\1" * len(data)
        keep_from = max(0, total - TAIL)
        assert all(there[:HEAD]), "the head"
        assert all(there[keep_from:]), "the tail"
        assert sum(there) <= HEAD + TAIL + BLOCK + LARGEST
        assert len(record.pieces) <= (HEAD + TAIL) // BLOCK + 2 * 64 + 2
    assert rewritten <= total + 16 * 1024 * (1 + len(steps) // 64), "in proportion to what is new"


def test_a_log_that_was_emptied_and_has_grown_beyond_does_not_go_on() -> None:
    held = growth("output", Held(), [(0, b"one two three")], 13, head=HEAD, tail=TAIL).after
    assert held.goes_on([(held.looks_from, b"one two three, four")], 19)
    assert held.goes_on([(500, b"far beyond")], 510), "what lies between was dropped"
    assert not held.goes_on([(held.looks_from, b"something else, longer")], 22)
    assert not held.goes_on([(0, b"one")], 3)
