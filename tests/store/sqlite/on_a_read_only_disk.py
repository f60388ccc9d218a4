"""A home on a file system that was mounted read-only: a clear error, and no harm (issue 2, 8)."""

import asyncio

import pytest

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
        with pytest.raises(StoreUnusable, match=r"cannot be used: Read-only file.*--home"):
            open_store(home, "this boot")
    reader = Reader.if_current(str(disk / "home" / "backburner.db"))
    assert reader is not None
    assert reader.get(task.id) == task, "what is there can be looked at all the same"
    reader.close()

    remount(disk, "rw")
    store = open_store(disk / "home", "this boot")
    assert await store.get(task.id) == task
    await queued(store)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
