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
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is not told of a change does not find it by looking now and then either."""
    for place in ("store.sqlite.store", "runtime.signals", "runtime.followup"):
        monkeypatch.setattr(f"backburner.{place}._LOOK_EVERY_S", 3600.0)


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further tries of deliveries come after 0.01, 0.06, 0.24, 1.2 and 7.2 seconds."""
    monkeypatch.setenv("BACKBURNER_DELIVERY_RETRY_S", "0.01")
