"""A target says whether a number is good enough, and says so in the table."""

import pytest

from bench.measure import Target


@pytest.mark.parametrize(
    ("target", "text", "good", "bad"),
    [
        (Target("at most", 2.0), "≤ 2x", (0.1, 2.0), (2.1,)),
        (Target("at least", 0.5), "≥ 0.5x", (0.5, 9.0), (0.4,)),
        (Target("at most", 250.0, "ms"), "≤ 250 ms", (250.0,), (251.0,)),
        (Target("within", 1.5), "0.67 to 1.5x", (0.67, 1.0, 1.5), (0.66, 1.51)),
    ],
)
def test_a_target(
    target: Target, text: str, good: tuple[float, ...], bad: tuple[float, ...]
) -> None:
    assert str(target) == text
    assert all(target.holds(number) for number in good)
    assert not any(target.holds(number) for number in bad)
