"""A home on a file system that was mounted read-only: a clear error, and no harm (issue 2, 8)."""

import asyncio
from pathlib import Path

from backburner.model.errors import StoreUnusable
from backburner.store.sqlite.reader import Reader
from backburner.store.sqlite.store import open_store
from tests.store.conformance.making import queued
from tests.store.sqlite.mounts import mount_disk, remount


async def main() -> None:
    disk = mount_disk("16m")
    store = open_store(disk / "home", "this boot")
    task = await queued(store)
    await store.close()

    remount(disk, "ro")
    for home in (disk / "home", disk / "new"):
        said = refusal(home)
        assert "cannot be used" in said, said
        assert "Read-only file system" in said, said
        assert "--home" in said, said
    try:
        Reader.if_current(str(disk / "home" / "backburner.db"))
    except StoreUnusable as error:
        assert "cannot be opened" in str(error) or "cannot be written" in str(error), error
    else:
        raise AssertionError("a reader without a place for its index was not refused")

    remount(disk, "rw")
    store = open_store(disk / "home", "this boot")
    assert await store.get(task.id) == task
    await queued(store)
    await store.close()


def refusal(home: Path) -> str:
    try:
        open_store(home, "this boot")
    except StoreUnusable as error:
        return str(error)
    raise AssertionError(f"{home} was opened")


if __name__ == "__main__":
    asyncio.run(main())
