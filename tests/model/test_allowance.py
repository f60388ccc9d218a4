"""X9: sizes that people write, and limits that make sense."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model.allowance import UNLIMITED, Allowance, format_size, parse_size
from backburner.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("512M", 512 << 20),
        ("2G", 2 << 30),
        ("2g", 2 << 30),
        ("1.5G", 3 << 29),
        (" 64 KiB ", 64 << 10),
        ("10MB", 10 << 20),
        ("1T", 1 << 40),
    ],
)
def test_x9_a_size_as_people_write_it(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "2X", "-1G", "1e3", "2G2", "inf", "٣M", "1,5G"])
def test_x9_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="for example 512M or 2G"):
        parse_size(text)


@given(st.integers(min_value=0, max_value=2**50))
def test_x9_a_size_is_shown_as_it_can_be_written(size: int) -> None:
    assert abs(parse_size(format_size(size)) - size) <= size / 1000


@pytest.mark.parametrize(("size", "text"), [(2 << 30, "2G"), (3 << 29, "1.5G"), (100, "100")])
def test_x9_a_size_for_people(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize("nice", [-21, 20])
def test_x9_no_such_niceness(nice: int) -> None:
    with pytest.raises(UsageError, match="from -20 to 19"):
        Allowance(nice=nice)


@pytest.mark.parametrize("memory", [0, -1, 1024, 2**63])
def test_x9_no_such_memory(memory: int) -> None:
    with pytest.raises(UsageError, match="512M or 2G"):
        Allowance(memory=memory)


@pytest.mark.parametrize("seconds", [0, -1, 0.9, float("nan"), float("inf")])
def test_x9_no_such_cpu_time(seconds: float) -> None:
    with pytest.raises(UsageError, match="90s or 10m"):
        Allowance(cpu_time=seconds)


def test_x9_it_comes_back_from_the_record_as_it_was() -> None:
    given = Allowance(nice=3, memory=2 << 30, cpu_time=90.5)
    assert Allowance.of({"allowance": given.to_spec()}) == given
    assert given.cpu_seconds == 91
    assert UNLIMITED.to_spec() == {}
    assert Allowance.of({}) == UNLIMITED
