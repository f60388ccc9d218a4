"""Questions that a running task asks, or that are asked about it, and the answers to them."""

from typing import Any

from backburner.model.clock import Instant
from backburner.model.errors import UsageError
from backburner.model.limits import QUESTION_MAX_CHARS
from backburner.model.values import value

APPROVAL_SCHEMA = {"enum": ["yes", "no"]}
"""What the answer to an approval has to be."""


def is_yes(answer: str) -> bool:
    """Whether an approval was granted; the answer fits its schema, as a word or as JSON."""
    return answer.strip().strip('"') == "yes"


@value
class Question:
    """One question of a task, or about it: open until it is answered, withdrawn, or the end."""

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
    schema: dict[str, Any] | None = None
    """A JSON schema that the answer has to fit; None for any text."""
    asker: str | None = None
    """Of an approval: the session of the owner that wants to stop the task. Not the task's own."""

    @property
    def approval(self) -> bool:
        """Whether it is asked about the task, and not by it."""
        return self.asker is not None

    @property
    def open(self) -> bool:
        """Whether an answer is still awaited."""
        return self.answer is None and not self.withdrawn


def question_text(question: object) -> str:
    """What is asked, in a form that can be told. UsageError where it is nothing, or too much."""
    text = str(question).strip()
    if not text or len(text) > QUESTION_MAX_CHARS:
        raise UsageError(f"a question has 1 to {QUESTION_MAX_CHARS:,} characters")
    return text
