"""What a check says: what it found, why that matters, and what to do about it."""

from enum import StrEnum

from backburner.model.values import value


class Level(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    """It works, and not as well as it could."""
    FAIL = "fail"
    """A promise cannot be kept."""


@value
class Finding:
    """One check."""

    check: str
    level: Level
    text: str
    remedy: str = ""
    why: str = ""
    """Why it matters, where all is not well."""


def so_many(count: int, what: str) -> str:
    """A number of things, for people."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
