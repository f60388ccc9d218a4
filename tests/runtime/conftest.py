"""A home and a keeper for all tests of a module; each has sessions of its own. Receivers."""

from collections.abc import Iterator

import pytest

from tests.faults.homes import home_of_module, shared_home
from tests.receiver import Receiver, receiver

__all__ = ["home_of_module", "shared_home"]


@pytest.fixture
def server() -> Iterator[Receiver]:
    """A receiver of webhooks."""
    with receiver() as running:
        yield running


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further tries of deliveries come after 0.01, 0.06, 0.24, 1.2 and 7.2 seconds."""
    monkeypatch.setenv("BACKBURNER_DELIVERY_RETRY_S", "0.01")
