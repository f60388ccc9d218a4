"""What must never be true is refused by the database itself; a change is whole or not at all."""

from pathlib import Path

import apsw
import pytest

from backburner.model.errors import StoreError
from backburner.model.signals import SignalState, end_key
from backburner.store.sqlite.store import SqliteStore
from tests.store.conformance.making import ADA, ENDINGS, PLACE, ended, get, queued, running
from tests.store.impossible import IMPOSSIBLE
from tests.store.raw import Raw
from tests.store.sqlite.conftest import Open


@pytest.mark.parametrize("name", IMPOSSIBLE)
async def test_e10_x1_the_database_refuses(store: SqliteStore, database: Path, name: str) -> None:
    await queued(store, "bg_q")
    await running(store, "bg_r")
    await ended(store, "bg_s")
    await ended(store, "bg_f", ending=ENDINGS["exit"])
    await ended(store, "bg_c", ending=ENDINGS["canceled"])
    with Raw(database) as raw:
        raw("PRAGMA foreign_keys = ON")
        with pytest.raises(apsw.ConstraintError):
            raw(IMPOSSIBLE[name])


async def test_x1_an_end_that_cannot_be_told_is_no_end(store: SqliteStore, database: Path) -> None:
    """State, event and signal are one transaction: the last of them fails here."""
    task = await running(store)
    events = await store.events(task.id)
    with Raw(database) as raw:
        raw(
            "INSERT INTO signal (key, task, owner, session, kind, text, data, state, channel, "
            f"created_at) VALUES ('{end_key(task.id)}', {task.seq}, 'x', 'x', 'ready', '', '{{}}', "
            "'pending', 'inbox', 1)"
        )
    for change in (
        store.finish(task.id, 1, ENDINGS["exit"]),
        store.finish(task.id, 1, ENDINGS["canceled"]),
    ):
        with pytest.raises(StoreError):
            await change
    kept = await get(store, task.id)
    assert (kept.state, kept.finished_at, kept.error) == (task.state, None, None)
    assert await store.events(task.id) == events
    with Raw(database) as raw:
        raw("DELETE FROM signal")
    assert await store.finish(task.id, 1, ENDINGS["exit"]) is not None
    assert [event.number for event in await store.events(task.id)] == [1, 2, 3]


async def test_x1_a_change_whose_event_cannot_be_written_is_no_change(
    store: SqliteStore, database: Path
) -> None:
    task = await queued(store)
    with Raw(database) as raw:
        raw(
            "INSERT INTO event (task, number, at, kind, data) "
            f"VALUES ({task.seq}, 2, 1, 'started', '{{}}')"
        )
    with pytest.raises(StoreError):
        await store.claim(task.id, 1, PLACE)
    with pytest.raises(StoreError):
        await store.request_stop(task.id, ADA, 5.0)
    assert await get(store, task.id) == task
    assert await store.signals(ADA) == []


async def test_x1_a_reboot_ends_leases_and_waits(open_here: Open) -> None:
    """A consumer of an earlier boot cannot be alive; boot time begins anew."""
    store = open_here()
    held, failed = await ended(store), await ended(store)
    await store.claim_signals(ADA, consumer="one", limit=2, lease_s=10**6)
    await store.delivery_failed(end_key(failed.id), "no answer", 2**60)
    assert await store.claim_signals(ADA, consumer="two", limit=9, lease_s=60) == []
    await store.close()
    after = open_here(boot_id="the next boot")
    claimed = await after.claim_signals(ADA, consumer="two", limit=9, lease_s=60)
    assert [signal.task for signal in claimed] == [held.id, failed.id]
    assert {signal.state for signal in claimed} == {SignalState.CLAIMED}
