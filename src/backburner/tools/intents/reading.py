"""What a short message wants of background work (A10). Pure, English only, and never raises."""

from enum import StrEnum

from backburner.model.values import value
from backburner.tools.intents.grammar import GRAMMAR
from backburner.tools.intents.notation import Found
from backburner.tools.intents.words import words_of


class Intent(StrEnum):
    """What a message asks for."""

    LIST = "list"
    """Which tasks there are."""
    OUTPUT = "output"
    """What a task has written."""
    STOP = "stop"
    """The end of a task."""
    STATUS = "status"
    """How a task stands."""


_RULES = {
    Intent.STOP: "SAYS_STOP",
    Intent.OUTPUT: "SAYS_OUTPUT",
    Intent.LIST: "SAYS_LIST",
    Intent.STATUS: "SAYS_STATUS",
}


@value
class Reading:
    """A message that was understood."""

    intent: Intent
    found: Found
    """What it says of the task it means: names of rules of the grammar, and the words there."""


def read(text: str) -> Reading | None:
    """What ``text`` asks for, and of which task; None where it is about something else, or more."""
    words = words_of(text)
    if words is None:
        return None
    for intent, rule in _RULES.items():
        found = GRAMMAR.read(rule, words)
        if found is not None:
            return Reading(intent, found)
    return None


def classify(text: str) -> Intent | None:
    """What a short message asks for of background work, by plain rules; None for all others.

    The answer is one of the words `list`, `output`, `stop`, `status`. It means that the tools are
    worth offering; `resolve` says which task is meant, if that is certain.
    """
    reading = read(text)
    return None if reading is None else reading.intent
