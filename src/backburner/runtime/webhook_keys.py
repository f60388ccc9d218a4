"""The keys that webhooks sign with: a file each, which only the owner can read.

The record names the file and does not hold the key. The file is there before the record names it,
so a crash leaves at most a file that nothing names, which `sweep` removes.

A shared record keeps them itself, apart from its rows and sealed (`work.sealing`), and removes them
with their channels.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Collection

from backburner.model.channels import Channel
from backburner.model.errors import StoreUnusable
from backburner.model.home import Home
from backburner.store.protocol import Store
from backburner.work.sealing import seal, unseal

_YOUNG_S = 3600.0


def key_for(home: Home, channel: Channel, key: str) -> str:
    """What the record is told of a key: the name of its file, or what it makes a name of itself."""
    return seal(key, _subject(channel)) if home.shared else keep(home, key)


async def key_of(store: Store, home: Home, channel: Channel) -> str:
    """The key of a channel. OSError or ValueError where it is gone or broken."""
    if not home.shared:
        return read(home, channel)
    kept = await store.secret(channel.secret or "")
    if kept is None:
        raise FileNotFoundError
    return unseal(kept, _subject(channel))


def _subject(channel: Channel) -> str:
    return f"{channel.owner}/{channel.name}"


def keep(home: Home, key: str) -> str:
    """Write a key down. Answers the name of its file."""
    name = secrets.token_hex(16)
    try:
        os.makedirs(home.secrets, mode=0o700, exist_ok=True)
        fd = os.open(f"{home.secrets}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(key + "\n")
            file.flush()
            os.fsync(fd)
    except OSError as error:
        raise StoreUnusable(
            f"{home.secrets} cannot be written to: {error.strerror}",
            remedy="free some space, or choose another home",
        ) from error
    return name


def read(home: Home, channel: Channel) -> str:
    """What is in the file of a channel. OSError or ValueError where it is gone or broken."""
    with open(f"{home.secrets}/{channel.secret}", encoding="ascii") as file:
        return file.read().strip()


def forget(home: Home, name: str) -> None:
    """The channel is gone, or never came to be."""
    if home.shared:
        return
    with contextlib.suppress(OSError):
        os.unlink(f"{home.secrets}/{name}")


def sweep(home: Home, channels: Collection[Channel]) -> None:
    """Remove the keys that no channel names: of an addition that a crash cut short."""
    named = {channel.secret for channel in channels}
    with contextlib.suppress(OSError), os.scandir(home.secrets) as entries:
        for entry in entries:
            # A young one may be named in a moment.
            if entry.name not in named and time.time() - entry.stat().st_mtime > _YOUNG_S:
                forget(home, entry.name)
