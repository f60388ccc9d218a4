"""What a job may use of the machine: niceness, memory, CPU time. The kernel holds it to that."""

import math
import re
from collections.abc import Mapping
from typing import Any

from backburner.model.errors import UsageError
from backburner.model.values import value

LEAST_MEMORY = 1024 * 1024
"""No program starts with less."""
_MOST_MEMORY = 1 << 60
_MOST_CPU_S = 1 << 40

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE | re.ASCII)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@value
class Allowance:
    """What a job and all that it starts may use. None is as much as there is."""

    nice: int | None = None
    """-20 to 19: the higher, the sooner it gives way to others."""
    memory: int | None = None
    """Bytes, of all its processes together where the kernel can count that, else of each."""
    cpu_time: float | None = None
    """Seconds, of each of its processes."""

    def __post_init__(self) -> None:
        for name, number in (("nice", self.nice), ("memory", self.memory)):
            if number is not None and not isinstance(number, int):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UsageError(f"{name} is a whole number, and not {number!r}")
        if self.nice is not None and not -20 <= self.nice <= 19:  # noqa: PLR2004 - the kernel's range
            raise UsageError(
                f"there is no niceness {self.nice}", remedy="give a number from -20 to 19"
            )
        if self.memory is not None and not LEAST_MEMORY <= self.memory <= _MOST_MEMORY:
            raise UsageError(
                f"a memory limit of {self.memory} bytes is none that a program could run with",
                remedy="give 1M or more, up to 1024P, such as 512M or 2G",
            )
        if self.cpu_time is not None and not 1 <= self.cpu_time <= _MOST_CPU_S:
            raise UsageError(
                f"a CPU time of {self.cpu_time:g} s cannot be a limit",
                remedy="give 1s or more, such as 90s or 10m",
            )

    @property
    def cpu_seconds(self) -> int | None:
        """Whole seconds, which is what the kernel counts."""
        return None if self.cpu_time is None else math.ceil(self.cpu_time)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"nice": self.nice, "memory": self.memory, "cpu_time": self.cpu_time}

    def to_spec(self) -> dict[str, Any]:
        """As the record keeps it: what is given."""
        return {name: value for name, value in self.document().items() if value is not None}

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "Allowance":
        """Of a recorded task."""
        return cls(**spec.get("allowance", {}))


UNLIMITED = Allowance()


def parse_size(text: str) -> int:
    """Bytes from ``512M``, ``2G``, ``1.5GiB``, ``4096``: units are powers of 1024.

    Raises ValueError with what is accepted.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no size; write for example 512M or 2G")
    return round(float(match[1]) * 1024 ** _UNITS[match[2].lower()])


def format_size(size: int) -> str:
    """``2G``, ``512M``, ``1.5G``: the inverse of `parse_size`, rounded where it is not even."""
    for unit in "TGMK":
        scale = 1024 ** _UNITS[unit.lower()]
        if size >= scale:
            return f"{size / scale:.4g}{unit}"
    return f"{size}"
