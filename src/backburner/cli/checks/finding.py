"""What a check says: what it found, why that matters, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    """It works, and not as well as it could."""
    FAIL = "fail"
    """A promise cannot be kept."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check."""

    check: str
    level: Level
    text: str
    remedy: str = ""
    why: str = ""
    """Why it matters, where all is not well."""
