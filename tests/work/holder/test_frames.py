"""Frames: whole ones come out as they went in, and nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.work.holder import frames
from backburner.work.holder.frames import ANSWERS, MAX_PAYLOAD, REQUESTS, FrameReader, frame

MESSAGES = st.lists(st.tuples(st.sampled_from(sorted(REQUESTS)), st.binary(max_size=50)))


@given(MESSAGES, st.lists(st.integers(0, 200)))
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    messages: list[tuple[bytes, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(frame(kind, payload) for kind, payload in messages)
    reader = FrameReader(REQUESTS)
    found: list[tuple[bytes, bytes]] = []
    at = 0
    for cut in [*sorted(min(cut, len(stream)) for cut in cuts), len(stream)]:
        found += reader.feed(stream[at:cut])
        at = max(at, cut)
    assert found == messages


@given(st.binary(max_size=300))
def test_garbage_is_refused_or_waited_for_and_never_more(garbage: bytes) -> None:
    try:
        found = FrameReader(REQUESTS).feed(garbage)
    except ValueError:
        return
    assert b"".join(frame(*each) for each in found) == garbage[: sum(5 + len(p) for _, p in found)]


@pytest.mark.parametrize(
    "hostile",
    [
        frames.DATA + (MAX_PAYLOAD + 1).to_bytes(4, "big"),
        frames.DATA + b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n",
        b"\0" * 5,
        frame(frames.OUTPUT, b"an answer is no request"),
    ],
)
def test_what_announces_too_much_or_is_none_is_refused_at_once(hostile: bytes) -> None:
    with pytest.raises(ValueError, match="no frame"):
        FrameReader(REQUESTS).feed(hostile)


def test_a_request_is_no_answer() -> None:
    assert not REQUESTS & ANSWERS
