"""Messages: what somebody tells a task while it runs, and what it tells its session."""

from backburner.model.clock import Instant
from backburner.model.signals import NewSignal, SignalKind, tell_key
from backburner.model.task import Task
from backburner.model.telling import said_text
from backburner.model.values import value


@value
class Message:
    """One thing that was sent to a task. Each reaches it once, in the order of their numbers."""

    task: str
    number: int
    """From 1, without gaps."""
    text: str
    sent_at: Instant
    attempt: int
    """The attempt that is to get it, or that got it."""


def telling(task: Task, text: str, which: str) -> NewSignal:
    """What a task tells its session; the same ``which`` again is not told again."""
    key = tell_key(task.id, task.attempt, which)
    said = said_text(task.title, task.id, text)
    return NewSignal(SignalKind.MESSAGE, key, said, {"text": text})
