"""What the tests of the embedded store share: a home of their own, and handles that get closed."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from backburner.store.sqlite.store import SqliteStore, open_store

BOOT = "this boot"

Open = Callable[..., SqliteStore]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A home that nobody has made yet."""
    return tmp_path / "home"


@pytest.fixture
def database(root: Path) -> Path:
    return root / "backburner.db"


@pytest.fixture
async def open_here(root: Path) -> AsyncIterator[Open]:
    """Opens a store, in `root` unless told; all of them are closed after the test."""
    opened: list[SqliteStore] = []

    def open_one(home: Path = root, boot_id: str = BOOT) -> SqliteStore:
        opened.append(open_store(home, boot_id))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_here: Open) -> SqliteStore:
    return open_here()
