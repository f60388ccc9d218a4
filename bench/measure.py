"""What a measurement is: rounds of ours and of the raw limit in turn, and the row they become.

The machine is not quiet: identical code varies by up to 1.7 here. So nothing is decided by an
absolute time; ours and the raw limit take turns, each pair of neighbours gives a ratio, and the
median of these ratios is what is compared with the target.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done: all of it, or as much as shows that the programs run."""

    quick: bool = False

    @property
    def rounds(self) -> int:
        """Of each of the two."""
        return 2 if self.quick else 5

    def count(self, full: int, *, quick: int | None = None) -> int:
        """How many of something: a tenth of it, unless said, when it has to be quick."""
        if not self.quick:
            return full
        return max(1, full // 10) if quick is None else quick


@dataclass(frozen=True, slots=True)
class Target:
    """What the number has to be, as a ratio or as it is: at most or at least this; or a ratio

    ``within`` this factor of 1, where more is no better than less.
    """

    sense: Literal["at most", "at least", "within"]
    value: float
    unit: str = "x"

    def holds(self, number: float) -> bool:
        """Whether this is good enough."""
        if self.sense == "within":
            return 1 / self.value <= number <= self.value
        return number <= self.value if self.sense == "at most" else number >= self.value

    def __str__(self) -> str:
        if self.sense == "within":
            return f"{1 / self.value:.2f} to {self.value:g}{self.unit}"
        sign = "≤" if self.sense == "at most" else "≥"
        return f"{sign} {self.value:g}{'' if self.unit == 'x' else ' '}{self.unit}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Without a target a number is there to be read."""

    name: str
    ours: float | None
    unit: str
    raw: float | None = None
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    """The least and the greatest ratio of all rounds."""
    target: Target | None = None
    notes: list[str] = field(default_factory=list[str])

    @property
    def met(self) -> bool | None:
        """None where there is nothing to meet, or nothing was measured."""
        if self.target is None:
            return None
        number = self.ratio if self.target.unit == "x" else self.ours
        return None if number is None else self.target.holds(number)

    def document(self) -> dict[str, Any]:
        """The row as JSON."""
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": self.ours,
            "raw": self.raw,
            "ratio": self.ratio,
            "spread": self.spread,
            "target": str(self.target) if self.target else None,
            "met": self.met,
            "notes": self.notes,
        }


Round = Callable[[], Awaitable[float]]
"""Does its work once and answers its number."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What the rounds gave, in their order."""

    ours: list[float]
    raw: list[float]

    def row(
        self,
        name: str,
        unit: str,
        *,
        scale: float = 1.0,
        target: Target | None = None,
        notes: Sequence[str] = (),
    ) -> Row:
        """The medians as a row; ``scale`` turns what was measured into ``unit``."""
        ratios = [ours / raw for ours, raw in zip(self.ours, self.raw, strict=True)]
        return Row(
            name,
            median(self.ours) * scale,
            unit,
            raw=median(self.raw) * scale,
            ratio=median(ratios),
            spread=(min(ratios), max(ratios)),
            target=target,
            notes=list(notes),
        )


async def in_turn(ours: Round, raw: Round, rounds: int, *, warm_up: bool = True) -> Pairs:
    """Ours, raw, ours, raw …; the first of each is thrown away, unless they are warm."""
    if warm_up:
        await ours()
        await raw()
    pairs = Pairs([], [])
    for _ in range(rounds):
        pairs.ours.append(await ours())
        pairs.raw.append(await raw())
    return pairs


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that ``share`` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def milliseconds(values: Sequence[float]) -> str:
    """p50, p90, p99 and the greatest of some times in seconds."""
    parts = [f"p{share} {percentile(values, share / 100) * 1e3:.2f}" for share in (50, 90, 99)]
    return f"{', '.join(parts)}, max {max(values) * 1e3:.2f} ms (of {len(values)})"
