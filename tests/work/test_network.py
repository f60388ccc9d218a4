"""Which addresses are those of machines on the internet."""

import pytest

from backburner.work.network import is_certainly_private, is_public


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8",
     "64:ff9b::808:808"],
)  # fmt: skip
def test_public_addresses(address: str) -> None:
    assert is_public(address)
    assert not is_certainly_private(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "192.0.2.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::", "2002:a9fe:a9fe::", "2001:db8::1", "nonsense", "",
    ],
)  # fmt: skip
def test_everything_else_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "::1"])
def test_what_is_private_without_looking_it_up(host: str) -> None:
    assert is_certainly_private(host)


@pytest.mark.parametrize("host", ["example.com", "localhost.example.com", "intranet"])
def test_names_are_looked_up_when_it_matters(host: str) -> None:
    assert not is_certainly_private(host)
