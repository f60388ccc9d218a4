"""A home and a keeper for all tests of a module, and the signals of a session."""

import pytest

from tests import ports
from tests.faults.homes import home_of_module, shared_home

__all__ = ["home_of_module", "shared_home"]


@pytest.fixture
def free_port() -> int:
    """A port of this machine on which nobody listens, and nobody else will."""
    return ports.free_port()
