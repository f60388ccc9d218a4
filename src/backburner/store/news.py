"""What a commit has changed, so that only those look whom it concerns.

Perhaps more than has changed, never less. Who cannot be told what it was hears None, and looks.
"""

from collections.abc import Callable, Collection
from enum import StrEnum

from backburner.model.events import EventKind
from backburner.model.values import value


class Subject(StrEnum):
    """What can change beside what happens to tasks."""

    INBOX = "inbox"
    """What sessions are told."""
    PUSHES = "pushes"
    """What goes through channels, and when."""
    SCHEDULES = "schedules"
    INPUT = "input"
    """What was sent to commands, and what became of it."""
    OFFERS = "offers"
    """The tools and agents that can be asked for."""
    OUTPUT = "output"
    """What tasks have written, and their files."""


@value
class News:
    """What one commit, or a part of it, has changed."""

    events: tuple[tuple[str, EventKind], ...] = ()
    """What happened to which task."""
    about: frozenset[Subject] = frozenset()

    def of(self, *kinds: EventKind) -> set[str]:
        """The tasks to which something of these kinds has happened."""
        return {task for task, kind in self.events if kind in kinds}


Listener = Callable[[News | None], None]


def about(*subjects: Subject) -> Callable[[News], bool]:
    """Whether news is about one of these."""
    return lambda news: not news.about.isdisjoint(subjects)


def of_task(task_id: str) -> Callable[[News], bool]:
    """Whether something happened to this task."""
    return lambda news: any(task == task_id for task, _ in news.events)


def of_kinds(kinds: Collection[EventKind]) -> Callable[[News], bool]:
    """Whether something of these kinds happened to any task."""
    return lambda news: any(kind in kinds for _, kind in news.events)
