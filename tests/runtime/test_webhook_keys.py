"""The keys of webhooks: for their owner's eyes, and gone with their channel."""

import os
import time
from pathlib import Path

import pytest

from backburner.model.channels import Channel, ChannelKind
from backburner.model.errors import StoreUnusable
from backburner.model.home import Home
from backburner.runtime import webhook_keys


def named(secret: str) -> Channel:
    return Channel("web", "ada", None, ChannelKind.WEBHOOK, "https://x.example", secret=secret)


def test_a_key_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path)
    name = webhook_keys.keep(home, "whsec_abc")
    assert webhook_keys.read(home, named(name)) == "whsec_abc"
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "secrets" / name).stat().st_mode & 0o777 == 0o600
    webhook_keys.forget(home, name)
    webhook_keys.forget(home, name)  # twice is harmless
    with pytest.raises(OSError, match="No such file"):
        webhook_keys.read(home, named(name))


def test_what_a_crash_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    home = Home(tmp_path)
    webhook_keys.sweep(home, [])  # there is no folder yet
    used, young, old = (webhook_keys.keep(home, f"whsec_{n}") for n in range(3))
    long_ago = time.time() - 7200
    for name in (used, old):
        os.utime(tmp_path / "secrets" / name, (long_ago, long_ago))
    webhook_keys.sweep(home, [named(used)])
    assert set(os.listdir(tmp_path / "secrets")) == {used, young}


def test_a_home_that_cannot_take_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("in the way")
    with pytest.raises(StoreUnusable, match="cannot be written to"):
        webhook_keys.keep(Home(tmp_path), "whsec_abc")
