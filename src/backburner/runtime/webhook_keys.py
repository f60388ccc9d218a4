"""The keys that webhooks sign with: a file each, which only the owner can read.

The record names the file and does not hold the key. The file is there before the record names it,
so a crash leaves at most a file that nothing names, which `sweep` removes.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Collection

from backburner.model.channels import Channel
from backburner.model.errors import StoreUnusable
from backburner.model.home import Home

_YOUNG_S = 3600.0


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
    """The key of a channel. OSError or ValueError where it is gone or broken."""
    with open(f"{home.secrets}/{channel.secret}", encoding="ascii") as file:
        return file.read().strip()


def forget(home: Home, name: str) -> None:
    """The channel is gone, or never came to be."""
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
