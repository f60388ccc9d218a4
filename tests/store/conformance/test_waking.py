"""Whoever listens is woken by every change, of its own process or another; nobody polls."""

import asyncio

from backburner.model import clock
from backburner.model.clock import SECOND
from backburner.model.events import EventKind
from backburner.store.protocol import Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import ADA, ENDINGS, PLACE, ended, queued, running


class Bell:
    """Counts the calls, and can be waited for."""

    def __init__(self) -> None:
        self.rung = asyncio.Event()
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        self.rung.set()

    async def wait(self) -> None:
        async with asyncio.timeout(30):
            await self.rung.wait()
        self.rung.clear()


async def test_e7_a_change_wakes_the_listeners_of_the_same_process(store: Store) -> None:
    bell = Bell()
    store.on_change(bell)
    task = await queued(store)
    await bell.wait()
    await store.claim(task.id, 1, PLACE)
    await bell.wait()


async def test_e7_a_change_wakes_the_listeners_of_other_processes(
    store: Store, open_another: OpenAnother
) -> None:
    others = [await open_another() for _ in range(3)]
    bells = [Bell() for _ in others]
    for other, bell in zip(others, bells, strict=True):
        other.on_change(bell)
    for _ in range(5):
        task = await queued(store)
        for other, bell in zip(others, bells, strict=True):
            while await other.get(task.id) is None:
                await bell.wait()


async def test_e7_other_processes_are_woken_in_far_less_than_a_second(
    store: Store, open_another: OpenAnother
) -> None:
    """The best of ten, because the machine may be busy; a poll would show in every one."""
    other = await open_another()
    bell = Bell()
    other.on_change(bell)
    took: list[int] = []
    for _ in range(10):
        began = clock.boot_now()
        task = await queued(store)
        while await other.get(task.id) is None:
            await bell.wait()
        took.append(clock.boot_now() - began)
    assert min(took) < SECOND // 20


async def test_every_sort_of_change_wakes(store: Store, open_another: OpenAnother) -> None:
    other = await open_another()
    bell = Bell()
    other.on_change(bell)
    task = await running(store)
    done = await ended(store)
    key = f"{done.id}:end"
    for change in (
        store.note(task.id, 1, EventKind.DETAIL, detail="x"),
        store.request_stop(task.id, ADA, 5.0),
        store.finish(task.id, 1, ENDINGS["exit"]),
        store.claim_signals(ADA, consumer="c", limit=1, lease_s=60),
        store.delivery_failed(key, "no", 0),
        store.acknowledge([key], ADA),
        store.forget([done.id]),
    ):
        last = bell.count
        bell.rung.clear()
        await change
        await bell.wait()
        assert bell.count > last


async def test_who_no_longer_listens_is_not_called(store: Store) -> None:
    leaving, staying = Bell(), Bell()
    leave = store.on_change(leaving)
    store.on_change(staying)
    await queued(store)
    await staying.wait()
    count = leaving.count
    assert count > 0
    leave()
    leave()  # twice is harmless
    await queued(store)
    await staying.wait()
    assert leaving.count == count


async def test_the_same_function_may_listen_twice(store: Store) -> None:
    bell = Bell()
    first = store.on_change(bell)
    store.on_change(bell)
    first()
    await queued(store)
    await bell.wait()
