"""Whether this machine may say of others that they are dead.

Who was out of touch with the database itself has heard of nobody meanwhile, and neither have the
others where it was the database that was gone, or could only be read: each then has its time to be
heard of again. So something is written before each look, which comes too late where that has to
wait. And whoever seems dead is looked at twice, a few of its beats apart: a machine that was
suspended with the database on it, or a clock that was set, makes everybody seem dead at once.
"""

from collections.abc import Callable, Sequence

from backburner.model import clock
from backburner.store.engine import Job, Silence

_A_FEW_BEATS = 1 / 3
"""Of the time after which one is dead: it would have been heard of twice."""


class Contact:
    """How long it has lasted without a break, and who has seemed dead meanwhile."""

    def __init__(self, silent_s: float, breaks: Callable[[], int]) -> None:
        """This machine is dead itself when it was silent for so long. ``breaks`` grows with each

        loss of the database.
        """
        self.silent_s = silent_s
        self._breaks = breaks
        self._suspects: dict[tuple[Job, str | None], float] = {}
        """Since when, of each with whom it was."""
        self._begin_anew(_now_s())

    def _begin_anew(self, now: float) -> None:
        self._begin = self._last = now
        self._broken = self._breaks()
        self._suspects.clear()

    def lasted_s(self) -> float:
        """The database has answered just now, or is about to be asked. For how long does it?"""
        now = _now_s()
        if now - self._last > self.silent_s / 2 or self._breaks() != self._broken:
            self._begin_anew(now)
        self._last = now
        return now - self._begin

    def dead(self, silent: Sequence[Silence]) -> list[Silence]:
        """Whose worker is dead beyond doubt, of those that a look has found silent."""
        before = self.lasted_s()  # first: it may have broken while that look was waited for
        now = self._begin + before
        suspects = {
            (each.job, each.node): self._suspects.get((each.job, each.node), now) for each in silent
        }
        self._suspects = suspects
        dead = {  # one may be silent in two ways
            each.job: each
            for each in silent
            if each.dead and now - suspects[each.job, each.node] >= each.silent_s * _A_FEW_BEATS
        }
        return [*dead.values()]


def _now_s() -> float:
    """Goes on while a machine is suspended, as the database's clock does."""
    return clock.boot_now() / clock.SECOND
