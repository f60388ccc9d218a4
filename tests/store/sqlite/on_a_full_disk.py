"""A disk that fills up: every call fails cleanly or is done whole, and all is well when there is
room again (X3, issue 2, 5 and 8)."""

import asyncio
import contextlib
import os
import shutil
from pathlib import Path

from backburner.model.errors import StoreFull
from backburner.model.states import State
from backburner.store.protocol import Store
from backburner.store.sqlite.reader import Reader
from backburner.store.sqlite.store import open_store
from tests.store.conformance.making import ADA, ENDINGS, PLACE, PLENTY, new_task, queued
from tests.store.raw import check_file
from tests.store.sqlite.mounts import mount_disk

PAGE = 4096


class Disk:
    """A small disk whose free room is set to the page."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def leave(self, pages: int) -> None:
        """Fill it, but for this many pages."""
        self.clear()
        room = os.statvfs(self.place)
        with (self.place / "filling").open("wb") as file:
            file.write(b"x" * max(0, room.f_bavail * room.f_frsize - pages * PAGE))

    def clear(self) -> None:
        (self.place / "filling").unlink(missing_ok=True)


PAGES = 100
"""A fresh record needs about sixty on the disk."""


async def main() -> None:
    disk = Disk(mount_disk("6m"))
    await opening(disk)
    await writing(disk)
    await writing_together(disk)
    await ending_what_runs(disk)


async def opening(disk: Disk) -> None:
    """A fresh home, and one that is there, with any amount of room: opened, or StoreFull."""
    opened = 0
    for pages in range(PAGES):
        disk.leave(pages)
        home = disk.place / f"h{pages}"
        with contextlib.suppress(StoreFull):
            store = open_store(home, "this boot")
            opened += 1
            await store.close()
        disk.clear()
        store = open_store(home, "this boot")  # whatever was left half done is no hindrance
        task = await queued(store)
        await store.close()
        disk.leave(pages % 12)
        with contextlib.suppress(StoreFull):
            reader = Reader.if_current(str(home / "backburner.db"))
            assert reader is not None
            assert reader.get(task.id) == task
            reader.close()
        disk.clear()
        check_file(home / "backburner.db")
        shutil.rmtree(home)
    assert 0 < opened < PAGES, "both were to be seen"


async def writing(disk: Disk) -> None:
    """What was answered with an id is there, what was answered with StoreFull is not."""
    home = disk.place / "home"
    store = open_store(home, "this boot")
    for pages in (0, 1, 2, 3, 5, 8, 30):
        disk.leave(pages)
        answered: list[str] = []
        refused: list[str] = []
        for number in range(200):
            task_id = f"t-{pages}-{number}"
            try:
                await store.create(new_task(task_id, spec={"x": "y" * 3000}), limit=PLENTY)
                answered.append(task_id)
            except StoreFull:
                refused.append(task_id)
                if len(refused) > 3:
                    break
        assert refused, "the disk did not fill up"
        await agree(store, answered, refused)
        disk.clear()
        await queued(store)  # works again
        await agree(store, answered, refused)
        check_file(home / "backburner.db")
    await store.close()
    store = open_store(home, "this boot")
    assert len(await store.newest(ADA, limit=PLENTY)) > 7
    await store.close()
    check_file(home / "backburner.db")


async def writing_together(disk: Disk) -> None:
    """The same in batches: a transaction that is lost is lost for all of its callers."""
    home = disk.place / "home"
    store = open_store(home, "this boot")
    for pages in (0, 2, 9, 20):
        disk.leave(pages)
        ids = [f"g-{pages}-{number}" for number in range(100)]
        outcomes = await asyncio.gather(
            *(
                store.create(new_task(task_id, spec={"x": "y" * 3000}), limit=PLENTY)
                for task_id in ids
            ),
            return_exceptions=True,
        )
        others = [
            each for each in outcomes if isinstance(each, BaseException)
            if not isinstance(each, StoreFull)
        ]  # fmt: skip
        assert others == []
        failed = [isinstance(outcome, StoreFull) for outcome in outcomes]
        assert any(failed)
        answered = [task_id for task_id, lost in zip(ids, failed, strict=True) if not lost]
        await agree(store, answered, [task_id for task_id in ids if task_id not in answered])
        disk.clear()
        await queued(store)
    await store.close()
    check_file(home / "backburner.db")


async def ending_what_runs(disk: Disk) -> None:
    """A task that could not be ended for lack of room runs on, untold, and can be ended later."""
    home = disk.place / "home"
    store = open_store(home, "this boot")
    task = await queued(store, "runs")
    assert await store.claim(task.id, 1, PLACE) is not None
    disk.leave(0)
    failures = 0
    for number in range(50):  # the log has some room left in itself
        try:
            await store.create(new_task(f"fill-{number}", spec={"x": "y" * 9000}), limit=PLENTY)
        except StoreFull:
            failures += 1
            if failures > 5:
                break
    try:
        done = await store.finish(task.id, 1, ENDINGS["with a result"])
    except StoreFull:
        kept = await store.get(task.id)
        assert kept is not None
        assert kept.state is State.RUNNING
        assert await store.signals(ADA, task=task.id) == []
        disk.clear()
        done = await store.finish(task.id, 1, ENDINGS["with a result"])
    assert done is not None
    assert len(await store.signals(ADA, task=task.id)) == 1
    await store.close()
    check_file(home / "backburner.db")


async def agree(store: Store, answered: list[str], refused: list[str]) -> None:
    for task_id in answered:
        assert await store.get(task_id) is not None, f"{task_id} is lost"
        assert len(await store.events(task_id)) == 1
    for task_id in refused:
        assert await store.get(task_id) is None, f"{task_id} is there"


if __name__ == "__main__":
    asyncio.run(main())
