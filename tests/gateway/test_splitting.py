"""Long answers are cut into posts (B5): within the limit, code whole, and always an end."""

from hypothesis import example, given
from hypothesis import strategies as st

from backburner.gateway import wording
from backburner.gateway.markup import (
    Block,
    Code,
    Plain,
    blocks_of,
    fenced,
    only_block,
    pieces_of,
    sendable,
    utf16_units,
)
from backburner.gateway.platform import Limits
from backburner.gateway.splitting import cut


def limits(text: int, *, utf16: bool = False) -> Limits:
    measure = utf16_units if utf16 else len
    return Limits(text=text, measure=measure, enclosure_bytes=1)


def test_what_fits_is_one_post_as_it_is() -> None:
    assert cut("hello\n\n  world", limits(100)) == ["hello\n\n  world"]
    assert cut("", limits(100)) == []
    assert cut(" \n ", limits(100)) == []


def test_words_are_cut_at_paragraphs_then_lines_then_spaces() -> None:
    assert cut("one two\n\nthree four", limits(12)) == ["one two", "three four"]
    assert cut("one two\nthree four", limits(12)) == ["one two", "three four"]
    assert cut("one two three", limits(8)) == ["one two ", "three"]
    assert cut("a" * 25, limits(10)) == ["a" * 10, "a" * 10, "a" * 5]


def test_a_block_of_code_stays_whole_where_it_fits() -> None:
    code = "```python\nprint(1)\nprint(2)\n```"
    assert cut(f"{'word ' * 6}\n{code}\nafter", limits(40)) == ["word " * 6, f"{code}\nafter"]


def test_a_longer_block_is_closed_and_opened_again_with_its_language() -> None:
    posts = cut("```sh\n" + "echo 12345\n" * 8 + "```", limits(40))
    assert len(posts) > 1
    for post in posts:
        assert post.startswith("```sh\n")
        assert post.endswith("\n```")
        assert set(post.split("\n")[1:-1]) == {"echo 12345"}


def test_a_fence_that_nobody_closed_reaches_to_the_end_and_is_closed_in_each_post() -> None:
    posts = cut("```\n" + "x" * 50, limits(30))
    assert [post[:4] + post[-4:] for post in posts] == ["```\n\n```"] * len(posts)
    assert "".join(post[4:-4] for post in posts) == "x" * 50


def test_code_within_a_line_is_told_from_words() -> None:
    assert pieces_of("a `b c` d ``e`` `") == [
        Plain("a "),
        Code("b c"),
        Plain(" d "),
        Code("e"),
        Plain(" `"),
    ]


def test_what_no_platform_takes_is_shown_as_a_sign() -> None:
    assert sendable("a\ud800b\x00c\x1b[31m\td\r\n") == "a\ufffdb\ufffdc\ufffd[31m\td\n"


def test_a_longer_fence_holds_a_shorter_one() -> None:
    assert blocks_of("````md\n```\nx\n```\n````\ny") == [Block("```\nx\n```", "md"), Plain("y")]


def test_nothing_in_a_block_can_end_it() -> None:
    for ticks in range(3, 9):
        text = f"a\n{'`' * ticks}\nb {'`' * ticks}"
        inside = fenced(Block(text, ""))[4:-4]
        assert "```" not in inside
        assert inside.replace("\u200b", "") == text
        assert blocks_of(fenced(Block(text, ""))) == [Block(inside, "")]


def test_a_message_that_is_one_block_is_told_from_others() -> None:
    assert only_block(" ```sh\n#!bg\nls\n``` ") == Block("#!bg\nls", "sh")
    assert only_block("```\nls```") == Block("ls", "")
    for other in (
        "ls",
        "",
        "```",
        "```\nls",
        "```\na\n```\nb\n```",
        "a\n```\nb\n```",
        "```\na\n```\nb",
    ):
        assert only_block(other) is None


def test_a_question_is_shown_as_code_and_does_not_swallow_how_it_is_answered() -> None:
    asked = "x\n```\n✅ Background task complete: fake\n````sh\n\u202ey"
    head, shown, hint = blocks_of(wording.question("bg_1", "a `\n```\n job", asked))
    assert isinstance(head, Plain)
    assert isinstance(shown, Block)
    assert "✅ Background task complete: fake" in shown.text
    assert "\u202e" not in shown.text
    assert hint == Plain("\nAnswer with: /answer bg_1 TEXT")


def test_emoji_count_twice_where_the_platform_counts_utf16() -> None:
    posts = cut("\U0001f600" * 10, limits(5, utf16=True))
    assert posts == ["\U0001f600" * 2] * 5


def test_a_thousand_blocks_are_not_measured_a_thousand_times_over() -> None:
    measured = 0

    def measure(text: str) -> int:
        nonlocal measured
        measured += len(text)
        return len(text)

    for hostile in ("```\nx\n```\nhi\n", "```\n", "`a", "*\n"):
        measured = 0
        text = hostile * (16_000 // len(hostile))
        posts = cut(text, Limits(2000, measure, 1))
        assert len(posts) > 5
        assert measured < 60 * len(text)


HOSTILE = st.text() | st.lists(
    st.sampled_from(["`", "```", "\n", " ", "a", "\U0001f600", "\u200b", "&", "\ud800", "\r"])
).map("".join)


@given(HOSTILE, st.integers(0, 60), st.booleans())
@example("```\n```\n```\n", 3, False)
@example("\n```" * 20, 1, True)
@example("````\n" * 9, 0, False)
def test_every_post_is_within_the_limit_and_there_is_an_end(
    text: str, most: int, utf16: bool
) -> None:
    of = limits(most, utf16=utf16)
    posts = cut(text, of)
    assert all(of.measure(post) <= most for post in posts)
    assert all(post.strip() for post in posts)


def _visible(text: str) -> str:
    return "".join(character for character in text if character not in "` \n\t\r\u200b\x0b\x0c")


@given(st.lists(st.sampled_from(["```", "```py", "word", "a b", "", "````", "`x`", "é" * 30])))
def test_no_character_is_lost(lines: list[str]) -> None:
    text = "\n".join(lines)
    posts = cut(text, limits(24))
    assert _visible("".join(posts)).replace("py", "") == _visible(text).replace("py", "")


@given(HOSTILE)
def test_a_measure_that_jumps_does_not_keep_it_from_ending(text: str) -> None:
    def measure(said: str) -> int:
        return len(said) * 7 % 23  # neither grows nor falls as texts do

    assert isinstance(cut(text, Limits(9, measure, 1)), list)
