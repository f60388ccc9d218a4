"""Who is who: a person of a platform is an owner, a chat or a thread of it is a session.

Names come from outside. They are escaped, so that no two places share one and the place can be read
back from the name after a restart; what would be longer than any platform's ids is nobody.
"""

from collections.abc import Collection
from typing import Protocol
from urllib.parse import quote, unquote

from backburner.gateway.platform import Person, Place
from backburner.store.protocol import Scope

ID_MAX_CHARS = 100
"""Of an id, escaped: the longest that a platform gives has about thirty."""

TALK = "#talk"
"""Ends the name of the session that has the agent's turns of a chat: they are no tasks of the chat
itself. No escaped name has this character."""


class People(Protocol):
    """Who may speak to the gateway, and where they are found again."""

    @property
    def scopes(self) -> Collection[Scope]:
        """Everything that is told through this gateway."""
        ...

    def scope_of(self, place: Place, person: Person) -> Scope | None:
        """The session that this person has there; None for a stranger."""
        ...

    def place_of(self, session: str) -> Place | None:
        """Where a session talks; None where it is no chat's."""
        ...


class Guests:
    """The people of a network platform: those on the list, and nobody else."""

    def __init__(self, platform: str, allowed: Collection[str]) -> None:
        self._platform = platform
        self._owners = {
            each: f"{platform}:{name}" for each in allowed if (name := _escaped(each)) is not None
        }

    @property
    def scopes(self) -> Collection[Scope]:
        """All sessions of everybody on the list."""
        return [Scope(owner) for owner in self._owners.values()]

    def scope_of(self, place: Place, person: Person) -> Scope | None:
        """None for whoever is not on the list."""
        owner = self._owners.get(person.id)
        chat = _escaped(place.chat)
        if owner is None or chat is None:
            return None
        if place.thread is None:
            return Scope(owner, f"{self._platform}:{chat}")
        thread = _escaped(place.thread)
        return None if thread is None else Scope(owner, f"{self._platform}:{chat}/{thread}")

    def place_of(self, session: str) -> Place | None:
        """The inverse of `scope_of`."""
        platform, colon, rest = session.removesuffix(TALK).partition(":")
        if platform != self._platform or not colon or "#" in rest:
            return None
        chat, slash, thread = rest.partition("/")
        return Place(unquote(chat), unquote(thread) if slash else None)


class LocalPerson:
    """Whoever sits at the terminal: the owner of the home, in one session of the command line."""

    PLACE = Place("here")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @property
    def scopes(self) -> Collection[Scope]:
        """That one session, and the turns of the agent there, which may ask something."""
        return [self._scope, Scope(self._scope.owner, f"{self._scope.session}{TALK}")]

    def scope_of(self, place: Place, person: Person) -> Scope | None:  # noqa: ARG002 - see `People`
        """Always the same."""
        return self._scope

    def place_of(self, session: str) -> Place | None:
        """The terminal, for that session."""
        return self.PLACE if session.removesuffix(TALK) == self._scope.session else None


def _escaped(text: str) -> str | None:
    try:
        name = quote(text, safe="")
    except UnicodeEncodeError:
        return None
    return name if len(name) <= ID_MAX_CHARS else None
