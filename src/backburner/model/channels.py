"""Channels: where signals are pushed to, beside the inbox that consumers pull from."""

from collections.abc import Collection
from enum import StrEnum

from backburner.model.errors import UsageError
from backburner.model.signals import INBOX, NOTIFY, SignalKind
from backburner.model.values import value

TARGET_MAX_CHARS = 8000

FURTHER_TRIES = (1, 6, 24, 120, 720)
"""How long each further try waits, in units of the first wait: 5 s, 30 s, 2 min, 10 min, 1 h. A
receiver that was restarted gets it at once, one that was down over lunch gets it too; after that a
person has to look."""

LONGEST_ASKED_WAIT_S = 86400.0
"""A receiver may ask for more time, and not for more than this."""

_NAME_MAX_CHARS = 64


class ChannelKind(StrEnum):
    """How a channel delivers."""

    COMMAND = "command"
    """A program of the owner, with the signal as JSON on its standard input."""
    WEBHOOK = "webhook"
    """An HTTP request, signed as Standard Webhooks say."""
    DESKTOP = "desktop"
    """A notification on the owner's screen."""


@value
class Channel:
    """Where the signals of an owner, or of one session, go as well."""

    name: str
    owner: str
    session: str | None
    """None means every session of the owner."""
    kind: ChannelKind
    target: str
    """The line for a shell, the address, or the message bus of a screen ("": the usual one)."""
    kinds: frozenset[SignalKind] | None = None
    """Which signals; None means all."""
    allow_private: bool = False
    """Whether the address may be one of this machine or of its network."""
    secret: str | None = None
    """Names the key of a webhook, which lies apart: in a file, or in a place of its own in a shared
    record."""
    paused: str | None = None
    """Why nothing goes through it."""

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.kinds is not None and not self.kinds:
            raise UsageError("a channel for no kind of signal", remedy="name one, or none for all")

    def wants(self, kind: SignalKind) -> bool:
        """Whether signals of this kind are for it."""
        return self.kinds is None or kind in self.kinds


def check_name(name: str) -> None:
    """What a channel can be called: part of keys and headers, so no dot and nothing strange."""
    plain = name.replace("-", "").replace("_", "")
    usable = plain.isascii() and plain.isalnum() and name[:1] not in ("-", "_")
    if not usable or len(name) > _NAME_MAX_CHARS:
        raise UsageError(
            f"{name!r} cannot be the name of a channel",
            remedy="use letters, digits, - and _, at most 64, a letter or digit first",
        )
    if name in (INBOX, NOTIFY):
        raise UsageError(f"the name {name} is taken by Backburner itself", remedy="choose another")


def check_line(line: str) -> str:
    """A line for a shell."""
    if not line.strip():
        raise UsageError("the command is empty", remedy="give a line for the shell")
    if "\0" in line:
        raise UsageError("a command cannot contain a NUL character")
    if len(line) > TARGET_MAX_CHARS:
        raise UsageError(
            f"the command is longer than {TARGET_MAX_CHARS} characters",
            remedy="put it into a file and run that",
        )
    return line


def check_address(address: str) -> str:
    """An address that a webhook can be sent to. Where its name leads is looked at when it is."""
    from urllib.parse import urlsplit  # slow to load, and `backburner ls` comes by here

    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable, parts = False, None
    if not usable or parts is None or not (address.isascii() and address.isprintable()):
        raise UsageError(
            f"{address!r} is no address of a webhook",
            remedy="write for example https://example.com/hook",
        )
    if " " in address or len(address) > TARGET_MAX_CHARS:
        raise UsageError("the address has a blank in it, or is too long")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "a user or a password in the address would be shown to everyone who lists channels",
            remedy="leave it out: the receiver checks the signature",
        )
    if parts.fragment:
        raise UsageError("an address with # in it is for a browser", remedy="leave that part out")
    return address


def shown_target(channel: Channel) -> str:
    """Where it goes, for people: the query of an address often is a password."""
    if channel.kind is ChannelKind.DESKTOP:
        return "this screen"
    if channel.kind is ChannelKind.WEBHOOK and "?" in channel.target:
        return channel.target.partition("?")[0] + "?…"
    return channel.target


def channel_key(key: str, channel: str) -> str:
    """The key of a signal's delivery through a channel; repetitions carry the same one."""
    return f"{key}@{channel}"


def wait_before_next(tries: int, first_wait_s: float, asked_s: float | None = None) -> float | None:
    """Seconds until the next try after so many that failed; None where it is given up.

    The receiver may have asked for more time.
    """
    if tries > len(FURTHER_TRIES):
        return None
    wait = FURTHER_TRIES[max(tries, 1) - 1] * first_wait_s
    return max(wait, min(asked_s or 0.0, LONGEST_ASKED_WAIT_S))


QUIET: Collection[SignalKind] = frozenset()
"""A session that wants to be told nothing."""
