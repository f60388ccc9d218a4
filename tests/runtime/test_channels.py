"""Channels as their owner sees them: adding, trying out, the screen; what is refused."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backburner import (
    Backburner,
    Conflict,
    NotFound,
    SignalKind,
    SignalState,
    UsageError,
    sync,
)
from tests.receiver import Receiver
from tests.runtime.deliveries import all_are, ended, lines, the_push
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_retries")]


async def test_a_notification_on_request(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # nothing is there
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        with pytest.raises(UsageError, match="no notify-send"):
            await session.run("true", notify=True)
        with pytest.raises(UsageError, match="no notify-send"):
            await bb.add_channel("screen", desktop=True)
        assert await session.tasks() == []
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    program = tmp_path / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$5|$DBUS_SESSION_BUS_ADDRESS" >>{tmp_path}/shown\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/here")
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        quiet = await ended(session)
        shown = await ended(session, notify=True)
        stopped = await session.run("sleep 60", notify=True)
        await stopped.stop(force=True)
        again = await (await shown.rerun()).wait(30)
        await wait_until_async(lambda: all_are(session, "notify", SignalState.DELIVERED, count=2))
        text = (tmp_path / "shown").read_text()
        assert text.count("|unix:path=/here\n") == 2
        assert shown.id in text
        assert again.id in text
        assert quiet.id not in text
        await bb.add_channel("screen", desktop=True, kinds=[SignalKind.FAILED])
        failed = await ended(session, "exit 1")
        await the_push(session, "screen")
        assert failed.id in (tmp_path / "shown").read_text()


BAD: list[tuple[Callable[[Any], Any], str]] = [
    (lambda bb: bb.add_channel("x"), "exactly one"),
    (lambda bb: bb.add_channel("x", command="true", webhook="https://x.example"), "exactly one"),
    (lambda bb: bb.add_channel("a b", command="true"), "cannot be the name"),
    (lambda bb: bb.add_channel("a.b", command="true"), "cannot be the name"),
    (lambda bb: bb.add_channel("x" * 65, command="true"), "cannot be the name"),
    (lambda bb: bb.add_channel("inbox", command="true"), "taken by Backburner"),
    (lambda bb: bb.add_channel("notify", command="true"), "taken by Backburner"),
    (lambda bb: bb.add_channel("x", command=" "), "empty"),
    (lambda bb: bb.add_channel("x", command="a\0b"), "NUL"),
    (lambda bb: bb.add_channel("x", command="a" * 9000), "longer than"),
    (lambda bb: bb.add_channel("x", command="true", allow_private=True), "only a webhook"),
    (lambda bb: bb.add_channel("x", command="true", kinds=[]), "no kind"),
    (lambda bb: bb.add_channel("x", command="true", kinds=["bad"]), "'bad' is no kind"),
    (lambda bb: bb.add_channel("x", webhook="ftp://example.com"), "no address"),
    (lambda bb: bb.add_channel("x", webhook="https://"), "no address"),
    (lambda bb: bb.add_channel("x", webhook="https://exa\nmple.com/"), "no address"),
    (lambda bb: bb.add_channel("x", webhook="https://example.com:99999/"), "no address"),
    (lambda bb: bb.add_channel("x", webhook="https://[::1/"), "no address"),
    (lambda bb: bb.add_channel("x", webhook="https://example.com/a b"), "blank"),
    (lambda bb: bb.add_channel("x", webhook="https://u:p@example.com/"), "password"),
    (lambda bb: bb.add_channel("x", webhook="https://example.com/#x"), "browser"),
    (lambda bb: bb.add_channel("x", webhook="http://localhost/"), "this machine"),
    (lambda bb: bb.add_channel("x", webhook="http://169.254.169.254/"), "this machine"),
    (lambda bb: bb.add_channel("x", webhook="http://[::ffff:10.0.0.1]/"), "this machine"),
]


def test_bad_input_is_refused_and_nothing_is_changed(home: Path) -> None:
    with sync.Backburner.open(home) as bb:
        for attempt, words in BAD:
            with pytest.raises(UsageError, match=words):
                attempt(bb)
        assert bb.channels() == []
        assert not (home / "secrets").exists()
        bb.add_channel("taken", webhook="https://example.com/")
        before = list((home / "secrets").iterdir())
        with pytest.raises(Conflict):
            bb.add_channel("taken", webhook="https://example.org/")
        assert list((home / "secrets").iterdir()) == before
        for missing in (bb.remove_channel, bb.resume_channel, bb.test_channel):
            with pytest.raises(NotFound, match="no channel 'nobody'"):
                missing("nobody")


def test_trying_a_channel_out_tells_what_became_of_it(
    home: Path, tmp_path: Path, server: Receiver
) -> None:
    with sync.Backburner.open(home) as bb:
        bb.add_channel("log", command=f"cat >>{tmp_path}/log")
        bb.add_channel("bad", command="echo no; exit 4")
        secret = bb.add_channel("web", webhook=server.url(), allow_private=True)
        assert secret is not None
        assert [bb.test_channel(name) for name in ("log", "bad", "web")] == [
            None,
            "exit code 4: no",
            None,
        ]
        (told,) = lines(tmp_path / "log")
        assert (told["kind"], told["data"]) == ("completed", {"test": True})
        assert server.received[0].verified(secret)["data"]["signal"]["data"] == {"test": True}
        assert bb.session("s").told(channel=None) == []
        (home / "secrets" / next(iter(os.listdir(home / "secrets")))).unlink()
        assert bb.test_channel("web") == "its key is gone: remove the channel, and add it anew"
