"""What the gateway asks of a chat platform, and what a platform tells the gateway.

An adapter translates between this and the library of its platform, and decides nothing: who may
speak, what a command means, what is sent again and how a long text is cut is the gateway's.
Everything that comes from a platform is hostile.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from backburner.model.values import value

ACTION_BYTES = 64
"""Of a button's action: what Telegram takes, the least of all."""


@value
class Place:
    """Where people talk: a chat, or a thread in it. Ids are the platform's own."""

    chat: str
    thread: str | None = None


@value
class Person:
    """Who talks. The id is what counts: anybody can change their name."""

    id: str
    name: str


@value
class Upload:
    """A file that came with a message. Fetched when somebody wants it."""

    name: str
    media_type: str
    size: int | None
    """As the platform says; None where it does not."""
    fetch: Callable[[int], Awaitable[bytes]]
    """At most so many bytes; more is `Refused`."""


@value
class Message:
    """Something that a person wrote. A command is ``/name arguments`` however it was entered."""

    key: str
    """The platform's id of it: the same when the platform tells of it twice."""
    place: Place
    person: Person
    text: str
    uploads: tuple[Upload, ...] = ()


@value
class Press:
    """Somebody pressed a button of ours."""

    key: str
    place: Place
    person: Person
    action: str
    post_id: str
    """The post that has the button."""


Heard = Message | Press


@value
class Button:
    """Something to press below a post."""

    label: str
    action: str


@value
class Enclosure:
    """A picture or another file that goes out."""

    name: str
    media_type: str
    data: bytes

    @property
    def is_picture(self) -> bool:
        """Whether platforms show it as a picture."""
        return self.media_type in {"image/png", "image/jpeg", "image/gif", "image/webp"}


@value
class Post:
    """One message of ours, within the limits of its platform."""

    key: str
    """The same whenever this post is tried again: where a platform can know it by that, a post that
    is there already is not made twice."""
    text: str
    """Plain text, with ``` blocks and `code` as the only markup."""
    buttons: tuple[Button, ...] = ()
    enclosure: Enclosure | None = None


@value
class Limits:
    """What one message of a platform holds."""

    text: int
    measure: Callable[[str], int]
    """How long a text is, as the platform counts."""
    enclosure_bytes: int
    edits: bool = True


@value
class MenuEntry:
    """A command, as the menu of a platform shows it."""

    name: str
    summary: str
    takes: str
    """What is written after it, such as ``ID``; empty where nothing is."""


class Later(Exception):
    """The platform is busy, or not to be reached: try again, and not before this many seconds."""

    def __init__(self, reason: str, after_s: float | None = None) -> None:
        super().__init__(reason)
        self.after_s = after_s


class Refused(Exception):
    """The platform will never take this: the chat is gone, the bot was thrown out."""


class BadCredentials(Exception):
    """The platform does not know this bot: its token is wrong, or was taken back."""


class Platform(Protocol):
    """A chat platform, reached through its own library."""

    @property
    def name(self) -> str:
        """One word, in lower case: part of the names of sessions and owners."""
        ...

    @property
    def limits(self) -> Limits:
        """What one message holds."""
        ...

    async def listen(
        self, hear: Callable[[Heard], Awaitable[None]], menu: Sequence[MenuEntry]
    ) -> None:
        """Stay connected, and tell what is heard, in order, until cancelled.

        A connection that is lost is made again. What the platform tells of is acknowledged to it
        after ``hear`` has returned, where it can be told again. `BadCredentials`.
        """
        ...

    async def post(self, place: Place, post: Post) -> str:
        """Make one message, and answer its id. `Later`, `Refused`."""
        ...

    async def edit(self, place: Place, post_id: str, post: Post) -> None:
        """Change a message of ours; one that is the same already is left. `Later`, `Refused`."""
        ...
