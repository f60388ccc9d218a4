"""What a program has switched on in a terminal, for who comes later and for who leaves."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.work.holder.modes import Modes

ENTER = b"\x1b[?1049h"
LEAVE = b"\x1b[?1049l"


def after(*pieces: bytes) -> Modes:
    modes = Modes()
    for piece in pieces:
        modes.feed(piece)
    return modes


@pytest.mark.parametrize(
    ("output", "redo", "undo"),
    [
        (b"plain", b"", b""),
        (ENTER + b"text", ENTER, LEAVE),
        (ENTER + b"text" + LEAVE, b"", b""),
        (b"\x1b[?25l", b"\x1b[?25l", b"\x1b[?25h"),  # a hidden cursor
        (b"\x1b[?25l\x1b[?25h", b"", b""),
        (b"\x1b[?1000;1006h", b"\x1b[?1000h\x1b[?1006h", b"\x1b[?1000l\x1b[?1006l"),
        (b"\x1b[?7727h\x1b[?5h", b"", b""),  # none of those that matter
        (b"\x1b[?\x1b[?1049h", ENTER, LEAVE),
        (b"\x1b[?1049x\x1b[1049h\x1b?1049h", b"", b""),
    ],
)
def test_what_is_switched_on_is_known(output: bytes, redo: bytes, undo: bytes) -> None:
    assert (after(output).redo(), after(output).undo()) == (redo, undo)


@given(
    st.lists(
        st.sampled_from([ENTER, LEAVE, b"\x1b[?25l", b"\x1b[?25;2004h", b"x\x1b", b"\x1b[31m"])
    ),
    st.lists(st.integers(0, 60)),
)
def test_it_does_not_matter_where_output_is_cut(pieces: list[bytes], cuts: list[int]) -> None:
    text = b"".join(pieces)
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    cut = after(*(text[a:b] for a, b in pairwise(at)))
    assert cut.redo() == after(text).redo()


def test_a_sequence_without_an_end_is_not_kept() -> None:
    modes = after(b"\x1b[?" + b"1" * 100_000)
    modes.feed(b"h")
    assert modes.redo() == b""
