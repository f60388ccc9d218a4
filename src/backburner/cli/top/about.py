"""The head of the view, and what is said about the task whose output is shown, on a rule above it.

Both are drawn line by line, and only when what they say has changed.
"""

from textual.strip import Strip
from textual.widget import Widget

from backburner.cli import phrases
from backburner.cli.textwidth import clean, columns_of, cut
from backburner.cli.top.listpane import strip_of
from backburner.cli.top.rows import Piece, chip
from backburner.model import clock
from backburner.model.states import State
from backburner.model.task import Task
from backburner.model.values import value

_SHORTEST_TITLE = 20


@value
class Facts:
    """What the rule shows."""

    title: str
    id: str
    state: str
    colour: str
    rest: str
    question: str = ""
    note: str = ""
    """At the right: how the output is shown."""


def facts_about(task: Task, now: clock.Instant, *, question: str, note: str) -> Facts:
    """The facts of this task."""
    took = phrases.took(task, now)
    if task.state.terminal:
        rest = phrases.outcome(task) + (f" after {took}" if took else "")
    else:
        asks = task.state is State.INPUT_REQUIRED  # what it asks stands below
        how_far = "" if asks or task.stop is not None else phrases.outcome(task)
        rest = " · ".join(part for part in (took, how_far) if part)
    return Facts(
        clean(task.title),
        task.id,
        chip(task),
        phrases.STATE_COLOURS[task.state],
        clean(rest),
        clean(question),
        note,
    )


class About(Widget):
    """The rule, and below it the question that the task asks."""

    def __init__(self) -> None:
        super().__init__()
        self._facts: Facts | None = None

    def show(self, facts: Facts | None) -> None:
        """These from now on."""
        if facts == self._facts:
            return
        self._facts = facts
        self.styles.height = 2 if facts and facts.question else 1
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Textual asks for each line."""
        width, facts = self.size.width, self._facts
        if facts is None:
            return strip_of([("─" * width, "dim")], width)
        if y > 0:
            return strip_of([(cut(f" ? {facts.question}", width - 1), "magenta")], width)
        return strip_of(_rule(facts, width), width)


def _rule(facts: Facts, width: int) -> list[Piece]:
    """In a narrow terminal the id gives way, then how it goes, then the title."""
    note = f" {facts.note} ─" if facts.note else ""
    state: Piece = (f" {facts.state}", facts.colour)
    named: Piece = (f" {facts.id} ·" if facts.id != facts.title else "", "dim")
    rest: Piece = (f" · {facts.rest}" if facts.rest else "", None)
    for parts in ([named, state, rest], [state, rest], [state]):
        room = width - columns_of(f"──  ·  ─{note}{''.join(text for text, _ in parts)}")
        if room >= min(columns_of(facts.title), _SHORTEST_TITLE):
            break
    else:
        parts = [state]
    title = cut(facts.title, max(room, 1))
    said: list[Piece] = [("── ", "dim"), (title, "bold"), (" ·", "dim"), *parts, (" ", None)]
    used = sum(columns_of(text) for text, _ in said)
    return [*said, ("─" * max(0, width - used - columns_of(note)), "dim"), (note, "dim")]


class Head(Widget):
    """The first line: where we are, and what goes on there."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[Piece] = []

    def show(self, pieces: list[Piece]) -> None:
        """This from now on."""
        if pieces != self._pieces:
            self._pieces = pieces
            self.refresh()

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - there is one line
        """Textual asks for each line."""
        return strip_of(self._pieces, self.size.width)
