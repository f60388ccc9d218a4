"""X9: which Backburner is newer, and who may ask whom to leave."""

import itertools

import pytest

import backburner
from backburner.runtime.edition import UNKNOWN, Edition, ours, read_edition
from backburner.store.sqlite.migrations import migrations

IN_ORDER = [
    "0.1.0.dev1",
    "0.1.0a1",
    "0.1.0a2",
    "0.1.0b1",
    "0.1.0rc1",
    "0.1.0",
    "0.1.0.post1",
    "0.1.1",
    "0.2",
    "0.10.0",
    "1.0.dev3",
    "1.0",
    "99.0",
]


@pytest.mark.parametrize(("older", "newer"), list(itertools.combinations(IN_ORDER, 2)))
def test_x9_versions_follow_each_other(older: str, newer: str) -> None:
    assert Edition(newer, 2).may_replace(Edition(older, 2))
    assert not Edition(older, 2).may_replace(Edition(newer, 2))


@pytest.mark.parametrize("version", [*IN_ORDER, "1.0+local.7", "nonsense", ""])
def test_x9_one_never_replaces_its_like(version: str) -> None:
    assert not Edition(version, 2).may_replace(Edition(version, 2))
    assert not Edition(version, 2, stays=True).may_replace(Edition(version, 2, stays=True))


def test_x9_the_same_version_in_other_words() -> None:
    for one, other in (("1.0", "1.0.0"), ("1.0", "1.0+local")):
        assert not Edition(one, 2).may_replace(Edition(other, 2))
        assert not Edition(other, 2).may_replace(Edition(one, 2))


def test_x9_who_can_read_more_is_newer_whatever_it_calls_itself() -> None:
    assert Edition("0.1", 3).may_replace(Edition("0.2", 2))
    assert not Edition("0.2", 2).may_replace(Edition("0.1", 3))


def test_x9_one_that_stays_has_the_place_of_one_that_does_not() -> None:
    """And never of a newer one; nor does an equal one take it back."""
    plain, staying, newer = Edition("1", 2), Edition("1", 2, stays=True), Edition("2", 2)
    assert staying.may_replace(plain)
    assert not plain.may_replace(staying)
    assert newer.may_replace(staying)
    assert not staying.may_replace(newer)


def test_x9_what_is_said_is_read_again() -> None:
    assert ours() == Edition(backburner.__version__, max(migrations()))
    for edition in (ours(), ours(stays=True), Edition("1.2rc1+x", 7)):
        said = edition.said_by(4711)
        assert read_edition(said, 4711) == edition
        assert read_edition(said + b"the rest of what was there", 4711) == edition
        assert read_edition(said, 4712) == UNKNOWN, "of a keeper before this one"
        assert read_edition(said, 0) == edition, "of one that has another number here"


@pytest.mark.parametrize(
    "said",
    [b"", b"4711\n", b"4711", b"x\nbackburner 1 format 2\n", b"4711\nbackburner 1 format x\n",
     b"4711\nbackburner " + b"9" * 300 + b" format 2\n", b"\xff\xfe", b"4711\nbackburner \n",
     b"4711\nbackburner 1 format " + b"9" * 50 + b"\n"],
)  # fmt: skip
def test_x9_what_makes_no_sense_is_unknown_and_older_than_all(said: bytes) -> None:
    assert read_edition(said, 4711) == UNKNOWN
    assert ours().may_replace(UNKNOWN)
    assert not UNKNOWN.may_replace(ours())
