"""A letter: something to say in one place, cut into posts beforehand.

It has a name of its own, so that it can be recorded before it is sent, continued where a crash cut
it off, and recognised when somebody wants to say the same again.
"""

from typing import Any

from backburner.gateway.platform import Button, Limits, Place
from backburner.gateway.splitting import cut
from backburner.model.values import value

PARTS_MAX = 8
"""Posts of one letter: what is longer than that nobody reads in a chat."""

_REST = "[the rest is left out]"


@value
class File:
    """A file that goes with a letter: below one of the folders that it may come from."""

    root: str
    path: str


@value
class Letter:
    """What is said, in which place, and what the session has been told when it is said."""

    id: str
    place: Place
    parts: tuple[str, ...]
    buttons: tuple[Button, ...] = ()
    """Below the last part."""
    files: tuple[File, ...] = ()
    covers: tuple[str, ...] = ()
    """Keys of the signals that this tells."""

    @property
    def posts(self) -> int:
        """How many messages it takes."""
        return len(self.parts) + len(self.files)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "id": self.id,
            "place": place_document(self.place),
            "parts": list(self.parts),
            "buttons": [[each.label, each.action] for each in self.buttons],
            "files": [[each.root, each.path] for each in self.files],
            "covers": list(self.covers),
        }

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Letter":
        """The inverse of `document`."""
        return cls(
            document["id"],
            place_of(document["place"]),
            tuple(document["parts"]),
            tuple(Button(label, action) for label, action in document["buttons"]),
            tuple(File(root, path) for root, path in document["files"]),
            tuple(document["covers"]),
        )


def written(
    id: str,
    place: Place,
    text: str,
    limits: Limits,
    *,
    buttons: tuple[Button, ...] = (),
    files: tuple[File, ...] = (),
    covers: tuple[str, ...] = (),
) -> Letter:
    """A letter with this text, cut for the platform."""
    # No character counts for less than one: what comes after this is not looked at, since cutting
    # a hostile text takes long.
    parts = cut(text[: limits.text * PARTS_MAX + 1], limits)
    if len(parts) > PARTS_MAX:
        parts = [*parts[: PARTS_MAX - 1], *cut(_REST, limits)]
    return Letter(id, place, tuple(parts), buttons, files, covers)


def place_document(place: Place) -> list[str | None]:
    """A place as JSON."""
    return [place.chat, place.thread]


def place_of(document: list[Any]) -> Place:
    """The inverse of `place_document`."""
    chat, thread = document
    return Place(chat, thread)
