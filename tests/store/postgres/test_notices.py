"""E7: a notification says what has changed, no less; where it cannot, everybody looks."""

import asyncio
from collections.abc import Callable, Iterable

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model.channels import Channel, ChannelKind
from backburner.model.events import EventKind
from backburner.store.engine import Job
from backburner.store.news import News, Subject, about, of_kinds, of_task
from backburner.store.postgres import notices, queries
from backburner.store.postgres.node import open_node
from backburner.store.postgres.notices import payloads, told_by
from backburner.store.postgres.store import PostgresStore
from backburner.store.protocol import Facts
from tests.store.conformance.making import ADA, ENDINGS, PLACE, ended, queued, running
from tests.store.postgres.conftest import Open
from tests.store.postgres.proxy import Wire
from tests.waiting import wait_until_async

LONGEST = 8000
"""What PostgreSQL refuses."""


@given(
    st.lists(st.tuples(st.text(max_size=64), st.sampled_from(EventKind)), max_size=500),
    st.frozensets(st.sampled_from(Subject)),
)
def test_e7_what_happened_arrives_in_as_many_notices_as_it_takes(
    events: list[tuple[str, EventKind]], subjects: frozenset[Subject]
) -> None:
    said = list(payloads(News(tuple(events), subjects)))
    assert all(len(each.encode()) < LONGEST for each in said)
    heard = [told_by(each) for each in said]
    assert {event for news in heard if news for event in news.events} == set(events)
    assert frozenset[Subject]().union(*(news.about for news in heard if news)) == subjects


@pytest.mark.parametrize(
    "payload",
    ["", "look", "null", "[]", '{"events":{}}', '{"events":[],"about":[]}', "[" * 5000,
     '{"events":{"later":["bg_1"]},"about":[]}', '{"events":{"sent":7},"about":[]}',
     '{"events":{},"about":["something new"]}'],
)  # fmt: skip
def test_e7_who_does_not_understand_a_notice_looks(payload: str) -> None:
    """It comes from a program of another version, or from anybody."""
    assert told_by(payload) is None


def test_each_statement_that_is_named_there_is_one_that_writes() -> None:
    for name in notices._SUBJECTS:  # pyright: ignore[reportPrivateUsage]
        assert queries.query(name).writes, name


def test_what_is_written_of_output_and_files_wakes_nobody_else() -> None:
    for name, query in queries._all().items():  # pyright: ignore[reportPrivateUsage]
        if query.writes and name.startswith(("mirror_", "artifacts_")):
            assert name in notices._SUBJECTS, name  # pyright: ignore[reportPrivateUsage]


def run(address: str, text: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(b"SET search_path = backburner")
        connection.execute(text.encode())


class Ear:
    """What one process hears of others."""

    def __init__(self, store: PostgresStore) -> None:
        self.heard: list[News | None] = []
        store.on_news(self.heard.append)

    async def hears(self, wanted: Callable[[Iterable[News | None]], bool]) -> None:
        await wait_until_async(lambda: wanted(self.heard), message=lambda: str(self.heard))


async def test_e7_others_hear_what_happened_to_which_task(
    store: PostgresStore, address: str, open_at: Open
) -> None:
    ear, own = Ear(await open_at(address)), Ear(store)
    tasks = await asyncio.gather(*(running(store) for _ in range(200)))
    await asyncio.gather(*(store.finish(task.id, 1, ENDINGS["exit"]) for task in tasks))
    kinds = (EventKind.CREATED, EventKind.STARTED, EventKind.FINISHED)
    expected = {(task.id, kind) for task in tasks for kind in kinds}
    for each in (ear, own):
        await each.hears(lambda heard: expected <= {e for n in heard if n for e in n.events})
        assert None not in each.heard, "nobody has to look for what it was told"
        assert {s for n in each.heard if n for s in n.about} == {Subject.INBOX}


async def test_e7_only_those_look_whom_it_concerns(
    store: PostgresStore, address: str, open_at: Open
) -> None:
    other = await open_at(address)
    rung: set[str] = set()
    for name, concerns in {
        "schedules": about(Subject.SCHEDULES),
        "pushes": about(Subject.PUSHES),
        "input": about(Subject.INPUT),
        "inbox": about(Subject.INBOX),
        "stops": of_kinds({EventKind.STOP_REQUESTED}),
        "bg_1": of_task("bg_1"),
        "end": of_kinds({EventKind.LEFTOVERS}),
    }.items():
        other.on_change(lambda name=name: rung.add(name), concerns)
    await store.add_channel(Channel("phone", "ada", None, ChannelKind.COMMAND, "true"))
    await wait_until_async(lambda: len(rung) == 7, message=lambda: str(rung))
    rung.clear()
    task = await running(store, "bg_2")
    await store.request_stop(task.id, ADA, 5.0)
    await store.finish(task.id, 1, ENDINGS["exit"], leftovers=1)
    await queued(store, "bg_1")
    await store.note(task.id, 1, EventKind.LEFTOVERS, Facts(leftovers=0))
    await wait_until_async(lambda: "end" in rung, message=lambda: str(rung))
    assert rung == {"stops", "inbox", "pushes", "bg_1", "end"}


async def test_e7_a_listener_that_lost_its_connection_looks_whatever_concerns_it(
    address: str, open_at: Open
) -> None:
    async with Wire(address) as wire:
        store = await open_at(wire.address)
        rung = asyncio.Event()
        store.on_change(rung.set, lambda _: False)
        wire.cut_all()
        async with asyncio.timeout(30):
            await rung.wait()
        await store.close()


async def test_e7_who_is_told_nothing_looks_whatever_concerns_it(
    store: PostgresStore, address: str
) -> None:
    """Programs of the last release notify so."""
    rung = asyncio.Event()
    store.on_change(rung.set, lambda _: False)
    await ended(store)
    assert not rung.is_set()
    run(address, "NOTIFY backburner")
    async with asyncio.timeout(30):
        await rung.wait()


async def test_e7_a_change_that_nobody_can_see_wakes_nobody(
    store: PostgresStore, address: str
) -> None:
    node = await open_node(address, "nd_1")
    ear = Ear(store)
    task = await queued(store)
    count = len(ear.heard)
    assert await node.take(Job(task.id, 1)) is not None
    await node.claim(task.id, 1, PLACE)
    await ear.hears(lambda heard: len(list(heard)) > count)
    assert [news and news.of(EventKind.STARTED) for news in ear.heard[count:]] == [{task.id}]
    await node.close()
