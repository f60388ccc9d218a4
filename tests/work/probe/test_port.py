"""X4: a port is ready when a process of the job listens on it, and not when somebody else does."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator

import pytest

from backburner.work.probe import port as module
from backburner.work.probe.port import PortProbe, listeners
from tests.waiting import wait_until


def listening(family: socket.AddressFamily, address: str, port: int = 0) -> socket.socket:
    server = socket.socket(family)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, "." not in address)
    server.bind((address, port))
    server.listen()
    return server


@pytest.fixture(params=["0.0.0.0", "127.0.0.1", "127.0.0.9", "::", "::1", "::ffff:127.0.0.1"])
def server(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with listening(family, request.param) as server:
        yield server


def number_of(server: socket.socket) -> int:
    return server.getsockname()[1]


async def test_x4_a_port_of_the_job_is_ready(server: socket.socket) -> None:
    port = number_of(server)
    found = listeners(port)
    assert found is not None  # others may have that number at other addresses
    assert server.getsockname()[0] in [one.address for one in found]
    answer = await PortProbe(port, lambda: [os.getpid()]).look()
    assert (answer.ready, answer.text) == (True, f"it listens on port {port}")


async def test_x4_a_port_of_somebody_else_is_not(server: socket.socket) -> None:
    port = number_of(server)
    answer = await PortProbe(port, lambda: [os.getppid()]).look()
    assert not answer.ready
    assert f"port {port} is open, but another program has it" in answer.text


async def test_x4_a_closed_port_is_not() -> None:
    port = 1  # not one that the system gives out: somebody else might have it by now
    answer = await PortProbe(port, lambda: [os.getpid()]).look()
    assert (answer.ready, answer.text) == (False, "")


async def test_x4_a_bound_port_that_takes_no_connection_is_not() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        assert not (await PortProbe(number_of(server), lambda: [os.getpid()]).look()).ready


@contextlib.contextmanager
def stranger(port: int) -> Generator[int]:
    """Another process that listens on this port, at another address."""
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.2"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            wait_until(lambda: len(listeners(port) or []) == 2)
            yield process.pid
        finally:
            process.kill()


async def test_x4_ours_beside_a_strangers_on_another_address_is_ready() -> None:
    with listening(socket.AF_INET, "127.0.0.1") as ours, stranger(number_of(ours)) as theirs:
        port = number_of(ours)
        assert (await PortProbe(port, lambda: [os.getpid()]).look()).ready
        assert (await PortProbe(port, lambda: [theirs]).look()).ready
        assert not (await PortProbe(port, lambda: [os.getppid()]).look()).ready


async def test_x4_where_nothing_can_tell_a_connection_has_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_TABLES", {"/nowhere/tcp": socket.AF_INET})
    with listening(socket.AF_INET, "127.0.0.1") as server:
        port = number_of(server)
        assert (await PortProbe(port, list).look()).ready
    assert not (await PortProbe(port, list).look()).ready
