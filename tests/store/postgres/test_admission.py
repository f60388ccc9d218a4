"""X10: who is let into the engine, and when: owners and sessions in turn, as places free up."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from backburner.model.errors import UsageError
from backburner.model.events import EventKind
from backburner.model.order import Order, check_queue
from backburner.model.states import State
from backburner.model.task import Task
from backburner.store.engine import Job, Silence, route_of_node
from backburner.store.news import News
from backburner.store.postgres import migrations as module
from backburner.store.postgres.admission import RESERVE
from backburner.store.postgres.migrations import migrated, migrations
from backburner.store.postgres.node import open_node
from backburner.store.postgres.store import PostgresStore
from backburner.store.protocol import Scope
from backburner.store.record.ends import End, end_task
from backburner.store.record.transaction import Statements
from tests import postgres_server
from tests.store.conformance.making import ENDINGS, PLACE, PLENTY, get, new_task
from tests.store.postgres.conftest import Open
from tests.store.postgres.letting_in import end_one, let_in, machine, start, take
from tests.store.postgres.test_database import run


async def test_x10_more_may_be_let_in_than_there_is_room_for_now(
    store: PostgresStore, address: str
) -> None:
    """A machine goes before it has fetched them; a queue is made narrow, and paused."""
    machine(address, 40, routes="default,narrow")
    await store.set_queue("narrow", 4)
    tasks = [await start(store, "ada") for _ in range(60)]
    in_queue = [await start(store, "ada", queue="narrow") for _ in range(5)]
    for task in (tasks[0], *in_queue[:4]):
        run(address, f"DELETE FROM procrastinate_jobs WHERE args ->> 'task' = '{task.id}'")
        assert await store.claim(task.id, 1, PLACE) is not None
    run(address, "DELETE FROM procrastinate_workers")
    await store.set_queue("narrow", 1)
    await store.pause_queue("narrow", paused=True)
    other = await start(store, "bob")
    assert await store.finish(tasks[0].id, 1, ENDINGS["succeeded"]) is not None
    machine(address, 200)
    await start(store, "ada")
    assert other.id in let_in(address)
    assert in_queue[4].id not in let_in(address)


async def test_x10_what_is_let_in_at_one_blow_has_its_turns(
    store: PostgresStore, address: str
) -> None:
    *adas, bob = await asyncio.gather(
        *(start(store, "ada", priority=10) for _ in range(3)), start(store, "bob")
    )
    first, second, third = (task.id for task in adas)
    assert let_in(address) == [first, bob.id, second, third], "priorities count within an owner"


async def test_x1_what_a_machine_has_fetched_is_not_called_back(
    store: PostgresStore, address: str
) -> None:
    """It is about to begin it: a second job of it would come to another machine."""
    task = await start(store, "ada")
    run(address, "UPDATE procrastinate_jobs SET status = 'doing'")
    await store.set_owner_limit("zoe", 5)
    assert let_in(address) == [task.id]


async def test_x1_an_end_that_is_undone_calls_nothing_back(
    store: PostgresStore, address: str
) -> None:
    """An operation that fails after it has ended a task: the engine has it still."""
    task = await start(store, "ada")
    heard: list[News | None] = []
    store.on_news(heard.append)

    def fail(written: Statements) -> None:
        assert end_task(written, End(task.id, 1, ENDINGS["canceled"])) is not None
        raise ZeroDivisionError

    failing = store._writer.write(fail)  # pyright: ignore[reportPrivateUsage]
    failed, other = await asyncio.gather(failing, start(store, "bob"), return_exceptions=True)
    assert isinstance(failed, ZeroDivisionError)
    assert isinstance(other, Task)
    assert (await get(store, task.id)).state is State.QUEUED
    assert let_in(address) == [task.id, other.id]
    assert [news and news.events for news in heard] == [((other.id, EventKind.CREATED),)]


async def test_x10_only_as_many_are_let_in_as_there_are_places(
    store: PostgresStore, address: str
) -> None:
    tasks = [await start(store, "ada") for _ in range(RESERVE + 6)]
    assert let_in(address) == [task.id for task in tasks[:RESERVE]], "nobody is there yet"
    node = machine(address, 3)
    await start(store, "ada")
    assert len(let_in(address)) == RESERVE + 3
    await end_one(store, address, node)
    assert len(let_in(address)) == RESERVE + 3, "its place is given on in the same commit"


async def test_x10_what_nobody_has_taken_is_called_back_when_the_rules_change(
    store: PostgresStore, address: str
) -> None:
    machine(address, 50, routes="default,q")
    await store.set_queue("q", 5)
    in_queue = [await start(store, "ada", queue="q") for _ in range(3)]
    plain = [await start(store, "bob") for _ in range(3)]
    assert len(let_in(address)) == 6
    await store.pause_queue("q", paused=True)
    assert let_in(address) == [task.id for task in plain]
    await store.set_owner_limit("bob", 1)
    assert let_in(address) == [plain[0].id]
    await store.pause_queue("q", paused=False)
    await store.set_owner_limit("bob", None)
    assert set(let_in(address)) == {task.id for task in (*in_queue, *plain)}


async def test_x10_a_queue_has_places_of_its_own_machines_only(
    store: PostgresStore, address: str
) -> None:
    machine(address, 20)
    machine(address, 2, routes="gpu")
    await store.set_queue("gpu", 100)
    for _ in range(RESERVE + 5):
        await start(store, "ada", queue="gpu")
    assert len(let_in(address)) == RESERVE + 2


async def test_x10_nothing_is_stuck_when_machines_go_and_come_with_other_places(
    store: PostgresStore, address: str
) -> None:
    node = machine(address, 1)
    tasks = [await start(store, "ada") for _ in range(3 * RESERVE)]
    run(address, f"UPDATE node SET draining = true WHERE id = '{node}'")
    run(address, "DELETE FROM procrastinate_workers")
    served = {await end_one(store, address, "nd_other") for _ in range(RESERVE)}
    assert len(let_in(address)) >= RESERVE, "a reserve is always there"
    machine(address, 4, name=node)
    run(address, f"UPDATE node SET draining = false WHERE id = '{node}'")
    while let_in(address):
        served.add(await end_one(store, address, node))
    assert served == {task.id for task in tasks}


async def test_x9_what_waits_for_others_is_let_in_after_the_last_of_them(
    store: PostgresStore, address: str
) -> None:
    machine(address, 50)
    first, second = await start(store, "ada"), await start(store, "ada")
    then = await start(store, "ada", after=(first.id, second.id))
    chain = await start(store, "ada", after=(then.id,))
    for task in (first, second, then):
        assert {then.id, chain.id} & set(let_in(address)) <= {task.id}
        await store.claim(task.id, 1, PLACE)
        await store.finish(task.id, 1, ENDINGS["succeeded"])
    assert let_in(address)[-1] == chain.id


async def test_x9_what_waits_in_vain_goes_to_a_machine_though_its_queue_is_paused(
    store: PostgresStore, address: str
) -> None:
    await store.set_queue("q", 1)
    await store.pause_queue("q", paused=True)
    first, second = await start(store, "ada"), await start(store, "ada")
    vain = await start(store, "ada", queue="q", after=(first.id, second.id))
    await store.request_stop(first.id, Scope("ada"), 0)
    assert vain.id in let_in(address)


# What the engine was given twice


async def _given_twice(store: PostgresStore, address: str) -> Task:
    """Who had fetched it was silent, so that it was given to another one, and goes on."""
    task = await start(store, "ada", queue="gpu")
    run(address, "UPDATE procrastinate_jobs SET status = 'doing'")
    node = await open_node(address, "nd_finds_it")
    silent = Silence(Job(task.id, 1), 0.0, dead=True, node=None, begun=False)
    assert await node.give_back_from(silent)
    await node.close()
    assert let_in(address) == [task.id]
    return task


@pytest.mark.parametrize("twice", [True, False], ids=["given back", "the fetch undone by a crash"])
async def test_x1_what_has_no_room_where_it_was_fetched_keeps_nothing_from_its_end(
    store: PostgresStore, address: str, *, twice: bool
) -> None:
    here = machine(address, 4, routes="default,gpu")
    await store.set_queue("gpu", 4)
    await store.set_owner_limit("ada", 1)
    task = await _given_twice(store, address) if twice else await start(store, "ada", queue="gpu")
    other = await start(store, "ada")
    assert await store.claim(other.id, 1, PLACE) is not None
    assert await take(address, task, name=here) == [False], "there is no room for it"
    assert task.id not in let_in(address)
    assert await store.finish(other.id, 1, ENDINGS["succeeded"]) is not None
    assert let_in(address).count(task.id) == 1
    assert await store.set_owner_limit("ada", 2) is None
    assert let_in(address).count(task.id) == 1


async def test_x1_what_was_given_twice_is_handed_on(store: PostgresStore, address: str) -> None:
    here = machine(address, 4, routes="gpu")
    there = machine(address, 4, routes=f"gpu,{route_of_node('nd_there', 'gpu')}", name="nd_there")
    await store.set_queue("gpu", 4)
    task = await _given_twice(store, address)
    node = await open_node(address, here)
    assert await node.take(Job(task.id, 1)) is not None
    assert await node.hand_on(Job(task.id, 1), refused=True)
    await node.close()
    routes = run(address, "SELECT queue_name FROM procrastinate_jobs")
    assert routes == [(route_of_node(there, "gpu"),)]
    assert await take(address, task, name=there) == [True]


async def test_x1_a_job_that_an_earlier_release_has_left_is_called_back(
    empty: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brought up to date, the record has none of what is not let in."""
    known = {number: name for number, name in migrations().items() if number < 7}
    with monkeypatch.context() as then:
        then.setattr(module, "migrations", lambda: known)
        migrated(empty).close()
        before = await open_at(empty)
        task = await start(before, "ada")
    run(empty, "UPDATE task SET let_in = 0")
    assert let_in(empty) == [task.id]
    store = await open_at(empty)
    assert let_in(empty) == []
    other = await start(store, "bob")
    assert let_in(empty) == [task.id, other.id]


# What machines take


async def test_x9_a_paused_queue_holds_no_place_of_a_machine(
    store: PostgresStore, address: str
) -> None:
    here = machine(address, 2, routes="default,q")
    await store.set_queue("q", 9)
    first = await start(store, "ada")
    await store.claim(first.id, 1, PLACE)
    await store.finish(first.id, 1, ENDINGS["succeeded"])
    run(address, "DELETE FROM procrastinate_jobs")
    then = [await start(store, "ada", queue="q", after=(first.id,)) for _ in range(2)]
    assert let_in(address) == [task.id for task in then]
    run(address, f"DELETE FROM procrastinate_jobs WHERE args ->> 'task' = '{then[0].id}'")
    run(address, "UPDATE queue SET paused = true")  # while the engine brings it
    assert await take(address, then[0], name=here) == [False]
    await store.pause_queue("q", paused=True)
    assert let_in(address) == [], "it is called back, though it has waited for another one"
    await store.pause_queue("q", paused=False)
    assert sorted(let_in(address)) == sorted(task.id for task in then)
    assert await take(address, *then, name=here) == [True, True]


def test_x9_no_queue_has_the_name_of_what_has_none() -> None:
    """They would share a route, and pausing it would stop what is in no queue."""
    with pytest.raises(UsageError, match="without a queue"):
        check_queue("default", 4)


async def test_x9_what_goes_to_one_node_asks_for_room_in_its_own_queue(
    store: PostgresStore, address: str
) -> None:
    """It was handed on there from several queues, of which one is full."""
    routes = (route_of_node("nd_here", route) for route in ("full", "free", "default"))
    here = machine(address, 9, routes=",".join(routes), name="nd_here")
    await store.set_queue("full", 1)
    await store.set_queue("free", 2)
    (runs,) = [await start(store, "ada", queue="full")]
    await store.claim(runs.id, 1, PLACE)
    run(address, "DELETE FROM procrastinate_jobs")
    waits = {
        queue: [await start(store, "ada", queue=queue) for _ in range(3)]
        for queue in ("full", "free", None)
    }
    run(address, "DELETE FROM procrastinate_jobs")
    run(
        address,
        f"UPDATE task SET sent_to = '{here}', let_in = 0, node = NULL WHERE state = 'queued'",
    )
    other = await start(store, "bob")
    await store.request_stop(other.id, Scope("bob"), 0)  # with an end everything is looked at
    expected = {task.id for task in (*waits["free"][:2], *waits[None])}
    assert set(let_in(address)) == expected
    await store.finish(runs.id, 1, ENDINGS["succeeded"])
    assert set(let_in(address)) == {*expected, waits["full"][0].id}


async def test_x10_what_goes_to_the_engine_as_it_is_written_is_what_would_be_let_in(
    store: PostgresStore, address: str, open_at: Open
) -> None:
    """The same life twice: in one record each start looks at all that waits."""
    looks = postgres_server.server().create()
    run(
        looks,
        "CREATE OR REPLACE FUNCTION all_go(given JSONB, reserve BIGINT) RETURNS BOOLEAN "
        "LANGUAGE sql AS 'SELECT false'",
    )
    stores = {address: store, looks: await open_at(looks)}
    for each in stores.values():
        await each.set_queue("narrow", 2)
    steps: Sequence[Step] = (
        _starts([("ada", n % 3) for n in range(4)]),
        _starts([("bob", 0)] * (RESERVE + 2)),  # more than there is room for
        lambda where, _: asyncio.to_thread(machine, where, 9, name="nd_both"),
        _starts([("cyd", 5)]),  # with room, and behind others
        _carry_out,
        _starts([("cyd", 0)] * 3),
        _starts([("ada", 0)] * 2, queue="narrow"),
        _starts([("ada", 0)] * 2, queue="narrow"),
        _carry_out,
        lambda _, each: each.set_owner_limit("ada", 1),
        _starts([("ada", 0)]),
        _starts([("ada", 0)]),  # above the limit of its owner
        _starts([("bob", 0)]),
        _carry_out,
        _carry_out,
    )
    for number, step in enumerate(steps):
        for where, each in stores.items():
            await step(where, each)
        assert let_in(address) == let_in(looks), number
    rows = "SELECT id, let_in, attempt, state, route, held FROM task ORDER BY seq"
    assert run(address, rows) == run(looks, rows)
    await stores[looks].close()
    postgres_server.server().drop(looks)


Step = Callable[[str, PostgresStore], Awaitable[Any]]


def _starts(whose: Sequence[tuple[str, int]], **order: Any) -> Step:
    """Of these owners with these priorities, together."""
    new = [
        new_task(scope=Scope(owner, "chat"), order=Order(priority=priority, **order))
        for owner, priority in whose
    ]
    return lambda _, each: asyncio.gather(*(each.create(one, limit=PLENTY) for one in new))


async def _carry_out(where: str, each: PostgresStore) -> None:
    """All that is there."""
    for task in let_in(where):
        run(where, f"DELETE FROM procrastinate_jobs WHERE args ->> 'task' = '{task}'")
        assert await each.claim(task, 1, PLACE) is not None
        assert await each.finish(task, 1, ENDINGS["succeeded"]) is not None
