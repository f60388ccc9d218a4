"""A home and a keeper for all tests of a module, and the signals of a session."""

import socket

import pytest

from tests.faults.homes import home_of_module, shared_home

__all__ = ["home_of_module", "shared_home"]


@pytest.fixture
def free_port() -> int:
    """A port of this machine on which nobody listens now."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]
