"""Questions that a running task asks, and the answers to them."""

from dataclasses import dataclass

from backburner.model.clock import Instant


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a task. It is open until it is answered or withdrawn, or its task ends."""

    task: str
    id: str
    """Chosen by who asks, and unique within the task: to ask twice is to ask once."""
    text: str
    asked_at: Instant
    answer: str | None = None
    answered_at: Instant | None = None
    withdrawn: bool = False
    """Whoever asked waits no longer."""
    attempt: int = 1
    """The attempt that asked."""

    @property
    def open(self) -> bool:
        """Whether an answer is still awaited."""
        return self.answer is None and not self.withdrawn
