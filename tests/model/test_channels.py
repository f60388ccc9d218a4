"""Channels: their names and addresses, and how often a delivery is tried."""

import pytest

from backburner.model.channels import (
    FURTHER_TRIES,
    Channel,
    ChannelKind,
    check_address,
    check_name,
    shown_target,
    wait_before_next,
)
from backburner.model.document import channel_document
from backburner.model.errors import UsageError
from backburner.model.signals import SignalKind


def test_x1_further_tries_wait_5_s_30_s_2_min_10_min_and_an_hour() -> None:
    waits = [wait_before_next(tries, 5.0) for tries in range(1, 8)]
    assert waits == [5, 30, 120, 600, 3600, None, None]
    assert len(FURTHER_TRIES) == 5


def test_a_receiver_may_ask_for_more_time_and_not_for_all_of_it() -> None:
    assert wait_before_next(1, 5.0, 60) == 60
    assert wait_before_next(2, 5.0, 7) == 30
    assert wait_before_next(1, 5.0, 10**9) == 86400
    assert wait_before_next(6, 5.0, 60) is None


@pytest.mark.parametrize("name", ["a", "phone", "My-2nd_hook", "x" * 64])
def test_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", "-a", "_a", "a b", "a.b", "a@b", "ä", "a\n", "x" * 65, "inbox"]
)
def test_no_names(name: str) -> None:
    with pytest.raises(UsageError):
        check_name(name)


@pytest.mark.parametrize(
    "address",
    ["https://example.com", "http://example.com:8080/a/b?c=d", "https://[2606:2800:220:1::1]/x"],
)
def test_addresses(address: str) -> None:
    assert check_address(address) == address


def test_what_a_channel_wants_and_shows() -> None:
    kinds = frozenset({SignalKind.FAILED})
    channel = Channel(
        "c", "ada", None, ChannelKind.WEBHOOK, "https://x.example/hook?key=1", kinds, secret="file"
    )
    assert channel.wants(SignalKind.FAILED)
    assert not channel.wants(SignalKind.READY)
    assert shown_target(channel) == "https://x.example/hook?…"
    assert channel_document(channel) == {
        "name": "c",
        "owner": "ada",
        "session": None,
        "type": "webhook",
        "target": "https://x.example/hook?…",
        "kinds": ["failed"],
        "allow_private": False,
        "paused": None,
    }
    command = Channel("c", "ada", "s", ChannelKind.COMMAND, "what?")
    assert (shown_target(command), command.wants(SignalKind.SILENT)) == ("what?", True)
    assert shown_target(Channel("c", "ada", "s", ChannelKind.DESKTOP, "unix:x")) == "this screen"
