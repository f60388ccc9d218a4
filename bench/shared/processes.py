"""Processor time: of a process, of what it has started, and of everybody else on this machine."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
CORES = os.cpu_count() or 1
_LEAST_LEFT = 0.1
"""Of a machine that is never all others'."""


def own_s(pid: int) -> float:
    """Of the process itself."""
    return sum(_fields(pid)[:2]) * _TICK_S


def started_s(pid: int) -> float:
    """Of those of its children that have ended and were waited for."""
    return sum(_fields(pid)[2:]) * _TICK_S


def _fields(pid: int) -> list[int]:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return [int(field) for field in stat[stat.rindex(")") + 2 :].split()[11:15]]


@dataclass(frozen=True, slots=True)
class Machine:
    """What all processes of this machine have used up to a moment, or between two."""

    at_s: float
    busy_s: float

    @classmethod
    def now(cls) -> Self:
        """Up to now."""
        names = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        user, nice, system, _, _, irq, softirq, steal = map(int, names)
        return cls(time.perf_counter(), (user + nice + system + irq + softirq + steal) * _TICK_S)

    def __sub__(self, before: Self) -> "Machine":
        return Machine(self.at_s - before.at_s, self.busy_s - before.busy_s)

    def left_for_us(self, used_s: Iterable[float]) -> float:
        """How many cores the others have left us, of which we have used so much."""
        others = max(0.0, self.busy_s - sum(used_s)) / self.at_s
        return max(_LEAST_LEFT * CORES, CORES - others)
