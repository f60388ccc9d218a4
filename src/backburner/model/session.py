"""Sessions: their names, those of their owners, and what they look like from outside."""

from dataclasses import dataclass, field

from backburner.model.clock import Instant
from backburner.model.errors import UsageError
from backburner.model.states import State


@dataclass(slots=True)
class SessionSummary:
    """A session, as its tasks tell of it."""

    name: str
    owner: str
    parent: str | None
    """The task that it is the session of, where it is a sub-agent's own."""
    counts: dict[State, int] = field(default_factory=dict[State, int])
    last_created_at: Instant = 0


NAME_MAX_BYTES = 1000
"""Every task and signal is found by them: an index has no room for more."""


def check_name(text: str) -> None:
    """Raise UsageError for a name that the record could not give back as it was.

    Bytes that are no UTF-8 reach Python as surrogates; no program could ask for such a session.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{text!a} cannot be the name of a session or its owner: it is not UTF-8",
            remedy="choose another name; check the locale if it looks right",
        ) from None
    if "\0" in text:
        raise UsageError("the name of a session or its owner cannot hold a NUL")
    if len(text.encode()) > NAME_MAX_BYTES:
        raise UsageError(
            f"the name of a session or its owner has {NAME_MAX_BYTES} bytes at the most",
            remedy="use a digest of what it is made from",
        )
