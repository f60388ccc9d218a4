"""Channels: where signals are pushed to, beside the inbox that consumers pull from."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from backburner.model.signals import SignalKind


class ChannelKind(StrEnum):
    """How a channel delivers."""

    COMMAND = "command"
    """A program of the owner, with the signal as JSON on its standard input."""
    WEBHOOK = "webhook"
    """An HTTP request, signed as Standard Webhooks say."""


@dataclass(frozen=True, slots=True)
class Channel:
    """Where the signals of an owner, or of one session, go as well."""

    name: str
    owner: str
    session: str | None
    """None means every session of the owner."""
    kind: ChannelKind
    target: str
    """The line for a shell, or the address."""
    kinds: frozenset[SignalKind] | None = None
    """Which signals; None means all."""

    def wants(self, kind: SignalKind) -> bool:
        """Whether signals of this kind are for it."""
        return self.kinds is None or kind in self.kinds


def channel_key(key: str, channel: str) -> str:
    """The key of a signal's delivery through a channel; repetitions carry the same one."""
    return f"{key}@{channel}"


QUIET: Collection[SignalKind] = frozenset()
"""A session that wants to be told nothing."""
