"""Progress as a bar: the same for `ls`, `show` and `top`. Pure, and quick to load."""

import math

from backburner.model.task import Progress, Task

_FULL = "█"
_PARTS = " ▏▎▍▌▋▊▉"
_REST = "░"


def fraction(given: Progress | None) -> float | None:
    """How much is done, from 0 to 1; None where that is not known."""
    if given is None or not given.total:
        return None
    part = given.current / given.total
    return min(1.0, max(0.0, part)) if math.isfinite(part) else None


def bar(part: float, columns: int) -> str:
    """``██████▌░░░``: exact to an eighth of a column, full only when all is done."""
    eighths = int(part * columns * 8)
    whole, rest = divmod(eighths, 8)
    drawn = _FULL * whole + (_PARTS[rest] if rest else "")
    return drawn + _REST * (columns - len(drawn))


def percent_and_bar(given: Progress | None, columns: int) -> str:
    """`` 62 % ██████▏░░░``: the number first, so that it is left when a table is cut."""
    part = fraction(given)
    if part is None:
        return ""
    return f"{math.floor(part * 100):3d} % {bar(part, columns)}"


def shows_progress(task: Task) -> bool:
    """Whether a bar says more than the state does: of what has ended, the state says it all."""
    return not task.state.terminal and fraction(task.progress) is not None
