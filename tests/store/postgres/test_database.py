"""What the database itself holds: its shape, its invariants, texts that it cannot hold."""

import asyncio

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model.clock import SECOND
from backburner.model.errors import StoreError, StoreUnusable, UsageError
from backburner.store.postgres.migrations import migrations
from backburner.store.postgres.store import PostgresStore, open_store
from backburner.store.postgres.texts import held, meant
from backburner.store.protocol import Scope
from tests.store.conformance.making import (
    ADA,
    ENDINGS,
    PLACE,
    ended,
    get,
    queued,
    running,
)
from tests.store.impossible import IMPOSSIBLE
from tests.store.postgres.conftest import Open


def run(address: str, sql: str) -> list[tuple[object, ...]]:
    """Without any of our rules: what another program, or a bug, could do."""
    with psycopg.connect(address, autocommit=True, options="-c search_path=backburner") as raw:
        cursor = raw.execute(sql.encode())
        return [] if cursor.description is None else cursor.fetchall()


async def test_e10_x1_the_database_refuses_what_must_never_be_true(
    store: PostgresStore, address: str
) -> None:
    await queued(store, "bg_q")
    await running(store, "bg_r")
    await ended(store, "bg_s")
    await ended(store, "bg_f", ending=ENDINGS["exit"])
    await ended(store, "bg_c", ending=ENDINGS["canceled"])
    for statement in IMPOSSIBLE.values():
        with pytest.raises((psycopg.IntegrityError, psycopg.DataError)):
            run(address, statement)


async def test_x1_a_change_whose_event_cannot_be_written_is_no_change(
    store: PostgresStore, address: str
) -> None:
    """State, event and signal are one transaction."""
    task = await running(store)
    other = await queued(store)
    columns = "task, number, at, kind, data"
    run(address, f"INSERT INTO event ({columns}) VALUES ({task.seq}, 3, 1, 'x', '')")
    whole, spoilt = await asyncio.gather(
        store.request_stop(other.id, ADA, 5.0),  # which shares its transaction, perhaps
        store.finish(task.id, 1, ENDINGS["exit"]),
        return_exceptions=True,
    )
    assert isinstance(spoilt, StoreError)
    assert not isinstance(whole, BaseException)
    assert (await get(store, task.id)).finished_at is None
    assert [signal.task for signal in await store.signals(ADA)] == [other.id]


async def test_a_name_that_no_index_holds_is_refused_and_harms_nobody(
    store: PostgresStore,
) -> None:
    with pytest.raises(StoreError):
        await queued(store, scope=Scope("x" * 1001, "chat"))
    await queued(store)


# Not st.text, which leaves surrogates out.
any_text = st.text(
    st.characters() | st.sampled_from(["\0", "\ue000", "\ue001", "\udcff", "\ud800"])
)


@given(any_text)
def test_every_text_comes_back_as_it_was(text: str) -> None:
    kept = held(text)
    assert "\0" not in kept
    kept.encode()
    assert meant(kept) == text


async def test_many_programs_that_open_a_new_database_at_once_find_it_whole(
    empty: str, open_at: Open
) -> None:
    stores = await asyncio.gather(*(open_at(empty) for _ in range(6)))
    await asyncio.gather(*(queued(store) for store in stores))
    assert len(await stores[0].newest(ADA, limit=10)) == 6
    assert run(empty, "SELECT number FROM format") == [(max(migrations()),)]


async def test_x9_a_program_one_format_behind_goes_on_and_one_further_behind_is_refused(
    store: PostgresStore, address: str
) -> None:
    newest = max(migrations())
    run(address, f"UPDATE format SET number = {newest + 1}")
    task = await queued(store)
    await (await open_store(address)).close()
    run(address, f"UPDATE format SET oldest = {newest + 1}")
    stop = store.request_stop(task.id, ADA, 1.0)
    writing = [store.claim(task.id, 1, PLACE), queued(store), stop]
    for refused in await asyncio.gather(*writing, return_exceptions=True):
        assert isinstance(refused, StoreUnusable)
        assert "newer" in str(refused)
    with pytest.raises(StoreUnusable, match="newer"):
        await store.claim(task.id, 1, PLACE)
    assert store.outdated
    assert run(address, "SELECT state, stop_at FROM task") == [("queued", None)], "nothing written"
    assert run(address, "SELECT kind FROM event") == [("created",)]
    with pytest.raises(StoreUnusable, match="newer"):
        await store.get(task.id)
    with pytest.raises(StoreUnusable, match="newer"):
        await open_store(address)


async def test_x1_leases_are_kept_by_the_clock_of_the_database(
    store: PostgresStore, address: str
) -> None:
    await ended(store)
    (claimed,) = await store.claim_signals(ADA, consumer="one", limit=1, lease_s=60)
    ((left,),) = run(
        address,
        "SELECT (lease_until - extract(epoch FROM clock_timestamp()) * 1000000)::bigint "
        f"FROM signal WHERE seq = {claimed.seq}",
    )
    assert isinstance(left, int)
    assert 0 < left <= 60 * SECOND


@pytest.mark.parametrize("address", ["postgresql://[", "postgresql://x?nonsense=1"])
async def test_an_address_that_is_none_is_said_so(address: str) -> None:
    with pytest.raises(UsageError, match="address"):
        await open_store(address)
