"""A place in the output of a task, as a short text that a model or a script can hand back. Pure."""

import re

from backburner.model.values import value

_TEXT = re.compile(r"(0|[1-9][0-9]{0,18})", re.ASCII)
_SHOWN = 40  # characters of a wrong cursor that an error repeats


@value
class Cursor:
    """Bytes of each stream that were given, counted from the job's first byte.

    Positions count what the job wrote, not what is left in the file: so a cursor holds when the
    middle of the log is dropped. Printed as `ATTEMPT.STDOUT` or `ATTEMPT.STDOUT.STDERR`.
    """

    attempt: int = 1
    stdout: int = 0
    stderr: int | None = None
    """None where both streams share one log."""

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Read a cursor that was printed by us; anything else is a ValueError."""
        parts = text.split(".", 3)
        if len(parts) not in {2, 3} or not all(_TEXT.fullmatch(part) for part in parts):
            shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
            raise ValueError(
                f"not a cursor: {shown!r} (use the one of an earlier answer, such as 1.48213)"
            )
        attempt, stdout, *stderr = (int(part) for part in parts)
        return cls(attempt, stdout, stderr[0] if stderr else None)

    def __str__(self) -> str:
        parts = (
            (self.attempt, self.stdout)
            if self.stderr is None
            else (self.attempt, self.stdout, self.stderr)
        )
        return ".".join(map(str, parts))
