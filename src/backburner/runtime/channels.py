"""Channels as their owner sees them: adding, listing, removing, trying one out."""

import os
import secrets
from collections.abc import Collection
from dataclasses import replace
from urllib.parse import urlsplit

from backburner.model import clock
from backburner.model.channels import (
    Channel,
    ChannelKind,
    channel_key,
    check_address,
    check_line,
    check_name,
)
from backburner.model.errors import Conflict, NotFound, UsageError
from backburner.model.home import Home
from backburner.model.limits import DEFAULT_SESSION, Settings
from backburner.model.signals import Signal, SignalKind, SignalState, to_kinds
from backburner.runtime import webhook_keys
from backburner.runtime.delivery import push
from backburner.store.protocol import Scope, Store
from backburner.work import network
from backburner.work.channels.outcome import Delivered, Letter
from backburner.work.channels.program import find_notifier


class ChannelService:
    """Everything that an owner can do with channels."""

    def __init__(self, store: Store, home: Home, settings: Settings) -> None:
        self._store = store
        self._home = home
        self._settings = settings

    async def add(
        self,
        name: str,
        scope: Scope,
        *,
        command: str | None = None,
        webhook: str | None = None,
        desktop: bool = False,
        kinds: Collection[SignalKind] | None = None,
        allow_private: bool = False,
    ) -> str | None:
        """Push signals there from now on. Answers the key of a webhook, which is not shown again.

        Without a session in the scope: those of every session of the owner.
        """
        check_name(name)
        if sum((command is not None, webhook is not None, desktop)) != 1:
            raise UsageError(
                "a channel is a command, a webhook or the desktop",
                remedy="give exactly one of the three",
            )
        if allow_private and webhook is None:
            raise UsageError("only a webhook has an address that could be private")
        wanted = None if kinds is None else to_kinds(kinds)
        if self._home.shared and webhook is None:
            raise UsageError(
                "a command or a screen belongs to one machine, and a shared record to many",
                remedy="add a webhook, whose receiver may run the command",
            )
        if command is not None:
            kind, target = ChannelKind.COMMAND, check_line(command)
        elif webhook is not None:
            kind, target = ChannelKind.WEBHOOK, _checked_address(webhook, allow_private)
        else:
            kind, target = ChannelKind.DESKTOP, desktop_bus()
        channel = Channel(
            name, scope.owner, scope.session, kind, target, wanted, allow_private=allow_private
        )
        if kind is ChannelKind.WEBHOOK:
            return await self._add_with_key(channel)
        await self._store.add_channel(channel)
        return None

    async def _add_with_key(self, channel: Channel) -> str:
        from backburner.work.channels.webhook import new_secret  # slow to load

        key = new_secret()
        kept = webhook_keys.key_for(self._home, channel, key)
        try:
            await self._store.add_channel(replace(channel, secret=kept))
        except Conflict:
            webhook_keys.forget(self._home, kept)
            raise
        return key

    async def remove(self, name: str, owner: str) -> None:
        """No more from now on; what it has not delivered is dropped."""
        channel = await self.get(name, owner)
        if not await self._store.remove_channel(name, owner):
            raise _not_found(name)
        if channel.secret is not None:
            webhook_keys.forget(self._home, channel.secret)

    async def resume(self, name: str, owner: str) -> bool:
        """Go on with a channel that was paused. False where it was not."""
        await self.get(name, owner)
        return await self._store.resume_channel(name, owner)

    async def listed(self, owner: str) -> list[Channel]:
        """The channels of an owner, by name."""
        return [channel for channel in await self._store.channels() if channel.owner == owner]

    async def get(self, name: str, owner: str) -> Channel:
        """One channel. NotFound."""
        for channel in await self.listed(owner):
            if channel.name == name:
                return channel
        raise _not_found(name)

    async def try_out(self, name: str, scope: Scope) -> str | None:
        """Deliver something that says it is a test, from here and now; nothing is recorded.

        Answers why it did not work.
        """
        channel = await self.get(name, scope.owner)
        signal = _test_signal(channel, scope)
        limit_s = self._settings.delivery_limit_s
        outcome = await push(
            channel, Letter(signal, None), self._store, self._home, limit_s=limit_s
        )
        return None if isinstance(outcome, Delivered) else outcome.reason


def desktop_bus() -> str:
    """Where notifications of this screen go: the keeper, which sends them, was born elsewhere."""
    if find_notifier() is None:
        raise UsageError(
            "there is no notify-send here, which shows notifications",
            remedy="install it: the package is libnotify-bin (Debian, Ubuntu) or libnotify",
        )
    return os.environ.get("DBUS_SESSION_BUS_ADDRESS", "")


def _test_signal(channel: Channel, scope: Scope) -> Signal:
    return Signal(
        seq=0,
        key=channel_key(f"test:{secrets.token_hex(8)}", channel.name),
        task="bg_test",
        owner=scope.owner,
        session=channel.session or scope.session or DEFAULT_SESSION,
        kind=SignalKind.COMPLETED,
        text=f"this is a test of the channel {channel.name}",
        data={"test": True},
        state=SignalState.CLAIMED,
        reason=None,
        channel=channel.name,
        tries=1,
        created_at=clock.now(),
        delivered_at=None,
    )


def _checked_address(address: str, allow_private: bool) -> str:
    check_address(address)
    host = urlsplit(address).hostname or ""
    if not allow_private and network.is_certainly_private(host):
        raise UsageError(
            f"{host} is an address of this machine or of its network",
            remedy="add it with --allow-private if that is meant",
        )
    return address


def _not_found(name: str) -> NotFound:
    return NotFound(f"no channel {name!r}", remedy="backburner channel ls lists them")
