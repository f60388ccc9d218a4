"""Names of tasks: not guessable, and safe as the name of a folder, whoever chose them."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model import ids

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
"""Without i, l, o and u, which people mistake for something else."""


def test_a_fresh_id_is_bg_and_sixteen_characters_of_crockford_base_32() -> None:
    assert ids.ALPHABET == CROCKFORD
    for _ in range(1000):
        assert re.fullmatch(rf"bg_[{CROCKFORD}]{{16}}", ids.new_id())


def test_fresh_ids_are_unique_and_use_all_eighty_bits() -> None:
    fresh = [ids.new_id() for _ in range(5000)]
    assert len(set(fresh)) == len(fresh)
    for place in range(3, 19):  # a character that is always the same would be five bits fewer
        assert {each[place] for each in fresh} == set(CROCKFORD)


def test_a_fresh_id_and_each_of_its_prefixes_is_valid() -> None:
    fresh = ids.new_id()
    assert all(ids.is_valid(fresh[:length]) for length in range(1, len(fresh) + 1))


@pytest.mark.parametrize("chosen", ["build", "Build-2", "7", "a_b-c", "x" * 64, "2026-11-15"])
def test_e12_a_caller_may_choose_an_id(chosen: str) -> None:
    assert ids.is_valid(chosen)


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        ".",
        "..",
        "../x",
        "x/../../etc",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "-rf",
        "_hidden",
        ".hidden",
        "a.b",
        "a b",
        " a",
        "a\n",
        "a\x00b",
        "~root",
        "a%",
        "a*",
        "$(id)",
        "a'b",
        'a"b',
        "\u00e9",
        "\u0663",  # a digit, but not one of ASCII
        "\u017f",  # a long s: upper case is S
        "\u212a",  # the Kelvin sign: lower case is k
        "x" * 65,
        "\udcff",
    ],
)
def test_e12_what_would_be_no_harmless_folder_name_is_refused(hostile: str) -> None:
    assert not ids.is_valid(hostile)


@given(st.text())
def test_e12_every_valid_id_is_one_plain_folder_name(text: str) -> None:
    if ids.is_valid(text):
        assert text.isascii()
        assert os.path.normpath(os.path.join("/home/tasks", text)) == f"/home/tasks/{text}"
        assert not text.startswith(("-", "."))
        assert 1 <= len(text) <= 64


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True))
def test_e12_every_name_of_the_narrow_alphabet_is_valid(text: str) -> None:
    assert ids.is_valid(text)
