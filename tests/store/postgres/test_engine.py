"""X10, E11: what may start is given to the engine in the transaction that says so, once.

The workers here are Procrastinate's own.
"""

import asyncio
import math
from dataclasses import replace
from typing import Any

import procrastinate
import psycopg
import pytest

from backburner.model import clock
from backburner.model.errors import LimitReached
from backburner.model.node import Node, NodeKind
from backburner.model.order import Order
from backburner.model.states import State
from backburner.model.task import Task
from backburner.store.engine import Job, Silence
from backburner.store.postgres.connection import connect, conninfo, settings
from backburner.store.postgres.engine import TASK, Procrastinate
from backburner.store.postgres.node import NodeStore, open_node
from backburner.store.postgres.statements import Statements
from backburner.store.postgres.store import PostgresStore
from tests.store.clocks import set_clock_of_record
from tests.store.conformance.making import ADA, ENDINGS, PLACE, PLENTY, get, new_task, queued
from tests.store.postgres.test_database import run
from tests.waiting import wait_until_async

_JOBS = """SELECT args ->> 'task', (args ->> 'attempt')::bigint, queue_name, status::text
           FROM procrastinate_jobs ORDER BY id"""


def jobs(address: str) -> list[tuple[Any, ...]]:
    return run(address, _JOBS)


async def dead(store: NodeStore, silent_s: float, contact_s: float = math.inf) -> list[Job]:
    """What is with workers that are dead, for somebody who was in touch for so long."""
    return [each.job for each in await store.silent(silent_s, contact_s) if each.dead]


async def test_x10_a_task_and_its_job_are_written_together(
    store: PostgresStore, address: str
) -> None:
    task = await queued(store)
    assert jobs(address) == [(task.id, 1, "default", "todo")]
    with pytest.raises(LimitReached):
        await store.create(new_task("bg_one_too_many"), limit=1)
    assert len(jobs(address)) == 1, "a job without its task"
    assert await store.create(new_task(task.id), limit=PLENTY) == task
    assert len(jobs(address)) == 1, "the same start twice is one job"


async def test_x10_what_ends_before_anybody_took_it_is_called_back(
    store: PostgresStore, address: str
) -> None:
    task, other = await queued(store), await queued(store)
    await store.request_stop(task.id, ADA, 0)
    assert jobs(address) == [(other.id, 1, "default", "todo")]


async def test_e12_an_id_is_free_again_also_for_the_engine_after_several_attempts(
    store: PostgresStore, address: str
) -> None:
    task = await queued(store)
    await store.claim(task.id, 1, PLACE)
    await store.requeue(task.id, 1, "the worker died")
    await store.request_stop(task.id, ADA, 0)
    assert jobs(address) == []
    assert await store.forget([task.id]) == 1
    await store.create(new_task(task.id), limit=PLENTY)
    assert jobs(address) == [(task.id, 1, "default", "todo")]


async def test_x9_what_comes_after_another_task_is_let_in_when_that_has_ended(
    store: PostgresStore, address: str
) -> None:
    first = await queued(store)
    then = await store.create(new_task(order=Order(after=(first.id,))), limit=PLENTY)
    vain = await store.create(new_task(order=Order(after=(first.id,))), limit=PLENTY)
    assert [job[0] for job in jobs(address)] == [first.id]
    await store.claim(first.id, 1, PLACE)
    await store.finish(first.id, 1, ENDINGS["exit"])
    assert {job[0] for job in jobs(address)} >= {then.id, vain.id}, "a worker fails them"


async def test_x9_a_queue_lets_in_as_many_as_are_wide(store: PostgresStore, address: str) -> None:
    await store.set_queue("gpu", 2)
    order = Order(queue="gpu")
    tasks = [await store.create(new_task(order=order), limit=PLENTY) for _ in range(4)]
    assert jobs(address) == [(task.id, 1, "gpu", "todo") for task in tasks[:2]]
    await store.claim(tasks[0].id, 1, PLACE)
    assert len(jobs(address)) == 2
    await store.finish(tasks[0].id, 1, ENDINGS["exit"])
    assert [job[0] for job in jobs(address)][-1] == tasks[2].id
    await store.pause_queue("gpu", paused=True)
    await store.request_stop(tasks[1].id, ADA, 0)
    assert tasks[3].id not in {job[0] for job in jobs(address)}
    await store.pause_queue("gpu", paused=False)
    assert tasks[3].id in {job[0] for job in jobs(address)}


async def test_x9_a_further_attempt_is_a_job_of_its_own_at_its_time(
    store: PostgresStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await store.create(new_task(order=Order(retries=1)), limit=PLENTY)
    await store.claim(task.id, 1, PLACE)
    later = clock.now() + 100 * clock.SECOND
    assert await store.fail_try(task.id, 1, ENDINGS["exit"], later) is not None
    node = await open_node(address, "nd_1")
    try:
        assert await node.next_held() == later
        await node.let_in_due()
        assert [job[:2] for job in jobs(address)] == [(task.id, 1)], "it is not due"
        set_clock_of_record(monkeypatch, 101 * clock.SECOND)
        await node.let_in_due()
        assert [job[:2] for job in jobs(address)] == [(task.id, 1), (task.id, 2)]
        assert await node.next_held() is None
    finally:
        await node.close()


async def test_x9_a_further_attempt_is_nobodys_before_its_time(
    store: PostgresStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine that made the last one looks at what it has, and must not find it there."""
    node = await open_node(address, "nd_1")
    task = await store.create(new_task(order=Order(retries=1)), limit=PLENTY)
    assert await node.claim(task.id, 1, PLACE) is not None
    later = clock.now() + 100 * clock.SECOND
    assert await node.fail_try(task.id, 1, ENDINGS["exit"], later) is not None
    assert await node.waiting_for_keeper() == []
    assert await node.waiting_for_application() == []
    assert await node.claim(task.id, 2, PLACE) is None
    set_clock_of_record(monkeypatch, 101 * clock.SECOND)
    await node.let_in_due()
    assert await node.claim(task.id, 2, PLACE) is not None
    await node.close()


async def test_e11_the_next_attempt_is_dispatched_when_the_old_one_is_fenced_off(
    store: PostgresStore, address: str
) -> None:
    task = await queued(store)
    await store.claim(task.id, 1, PLACE)
    await store.requeue(task.id, 1, "the worker died")
    assert [job[:2] for job in jobs(address)] == [(task.id, 1), (task.id, 2)]


@pytest.mark.slow
async def test_x10_workers_of_procrastinate_get_each_attempt_once(
    store: PostgresStore, address: str
) -> None:
    """Woken by its own notification, not by its interval; who was killed is found stalled."""
    taken: list[tuple[str, int]] = []

    async def configure(connection: psycopg.AsyncConnection[Any]) -> None:
        await connection.execute(settings(address))
        await connection.commit()

    def worker() -> procrastinate.App:
        connector = procrastinate.PsycopgConnector(
            conninfo=conninfo(address), min_size=1, max_size=3, configure=configure
        )
        app = procrastinate.App(connector=connector)

        @app.task(name=TASK)
        async def carry_out(task: str, attempt: int) -> None:  # pyright: ignore[reportUnusedFunction]
            taken.append((task, attempt))
            if task == "bg_stuck":
                await asyncio.Event().wait()

        return app

    apps = [worker(), worker()]
    for app in apps:
        await app.open_async()
    running = [
        asyncio.create_task(
            app.run_worker_async(
                concurrency=4, install_signal_handlers=False, fetch_job_polling_interval=3600,
                shutdown_graceful_timeout=0.1,
            )
        )
        for app in apps
    ]  # fmt: skip
    try:
        await wait_until_async(lambda: len(run(address, "SELECT FROM procrastinate_workers")) == 2)
        run(
            address,
            "INSERT INTO node (id, worker, routes, places) "
            "SELECT 'nd_' || id, id, '{default}', 20 FROM procrastinate_workers",
        )
        tasks = [await queued(store) for _ in range(20)]
        await wait_until_async(lambda: len(taken) >= 20)
        assert sorted(taken) == sorted((task.id, 1) for task in tasks)
        await queued(store, "bg_stuck")
        await wait_until_async(lambda: ("bg_stuck", 1) in taken)
        with connect(address) as connection:
            stuck = Job("bg_stuck", 1)
            silent = Procrastinate().silent(Statements(connection), 3600, 3600)
            assert stuck not in [each.job for each in silent], "its worker lives"
            run(address, "UPDATE node SET silent_s = 0.001")
            silent = Procrastinate().silent(Statements(connection), 3600, 3600)
            assert Silence(stuck, 0.001, dead=True, node=None, begun=False) in silent
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for app in apps:
            await app.close_async()


async def test_x10_a_commit_that_fails_leaves_neither_task_nor_job(
    store: PostgresStore, address: str
) -> None:
    run(address, "ALTER TABLE procrastinate_jobs ADD CONSTRAINT full_up CHECK (id < 0) NOT VALID")
    with pytest.raises(Exception, match="full_up"):
        await queued(store, "bg_1")
    assert await store.get("bg_1") is None
    with psycopg.connect(address, autocommit=True) as raw:
        raw.execute("ALTER TABLE backburner.procrastinate_jobs DROP CONSTRAINT full_up")
    await queued(store, "bg_1")
    assert len(jobs(address)) == 1


async def test_x2_a_job_that_was_fetched_by_an_answer_which_nobody_heard_is_given_anew(
    address: str,
) -> None:
    """Its worker lives, and does not know of it."""
    store = await open_node(address, "nd_1")
    task = await queued(store)
    fetched = Job(task.id, 1)
    run(address, "SELECT procrastinate_fetch_job_v2(NULL, NULL)")
    assert await dead(store, 3600) == [], "the answer may be on its way"
    assert await dead(store, 0) == [fetched]
    assert await store.give_back(fetched)
    assert jobs(address) == [(task.id, 1, "default", "todo")]
    await store.close()


@pytest.mark.parametrize("begun", [False, True])
async def test_e11_what_is_with_a_node_that_nobody_knows_is_not_forgotten(
    address: str, begun: bool
) -> None:
    store = await open_node(address, "nd_1")
    task = await queued(store)
    run(address, "SELECT procrastinate_fetch_job_v2(NULL, NULL)")
    assert await store.take(Job(task.id, 1)) is not None
    if begun:
        assert await store.claim(task.id, 1, PLACE) is not None
    assert await dead(store, 3600) == [], "it may be about to say who it is"
    assert await dead(store, 0) == [Job(task.id, 1)]
    await store.put_node(Node("nd_1", NodeKind.WORKER, "here", 1, silent_s=3600), 7)
    assert await dead(store, 0) == []
    assert (await store.quiet_s(7) is None, await store.quiet_s(8) is None) == (False, True)
    await store.close()


async def test_e11_nor_where_its_job_is_gone_too(address: str) -> None:
    store = await open_node(address, "nd_1")
    task = await queued(store)
    run(address, "SELECT procrastinate_fetch_job_v2(NULL, NULL)")
    assert await store.take(Job(task.id, 1)) is not None
    run(address, "DELETE FROM procrastinate_jobs")
    assert await dead(store, 3600) == []
    assert await dead(store, 0) == [Job(task.id, 1)]
    await store.close()


async def test_x2_what_was_let_in_and_has_no_job_is_given_to_the_engine_anew(address: str) -> None:
    """Its worker left while the database was away, and Procrastinate then forgot the job."""
    store = await open_node(address, "nd_1")
    task, other = await queued(store), await queued(store)
    run(address, "SELECT procrastinate_fetch_job_v2(NULL, NULL)")
    run(address, "DELETE FROM procrastinate_jobs WHERE status = 'doing'")
    assert await dead(store, 30, contact_s=29) == [], "nobody says so after an outage"
    assert await dead(store, 30) == [Job(task.id, 1)]
    assert await store.give_back(Job(task.id, 1))
    assert sorted(job[0] for job in jobs(address)) == sorted((task.id, other.id))
    assert await dead(store, 30) == []
    await store.close()


async def test_e11_each_has_its_own_time_to_be_heard_of_after_an_outage(address: str) -> None:
    """Whoever looks may give itself less, or more."""
    store = await open_node(address, "nd_1")
    for number, silent_s in enumerate((2, 60)):
        name = f"nd_{number}"
        each = await open_node(address, name)
        task = await queued(each)
        run(address, "SELECT procrastinate_fetch_job_v2(NULL, NULL)")
        await each.put_node(Node(name, NodeKind.WORKER, "here", 1, silent_s=silent_s), 0)
        assert await each.take(Job(task.id, 1)) is not None
        await each.close()
    seen = "UPDATE node SET seen_at = clock_timestamp() - silent_s * interval '1 second' * {}"
    run(address, seen.format(0.5))
    assert await store.silent(30, math.inf) == []
    run(address, seen.format(0.8))
    assert [(each.silent_s, each.dead) for each in await store.silent(30, 59)] == [(2, False)]
    run(address, seen.format(1.2))
    found = [await store.silent(30, contact_s) for contact_s in (1, 59, 61)]
    assert [sorted(each.silent_s for each in silent) for silent in found] == [[], [2], [2, 60]]
    assert all(each.dead for silent in found for each in silent)
    await store.close()


async def test_x2_jobs_of_which_nothing_is_left_are_closed(address: str) -> None:
    store = await open_node(address, "nd_1")
    task = await queued(store)
    run(address, "SELECT procrastinate_fetch_job_v2(NULL, NULL)")
    node = Node("nd_1", NodeKind.WORKER, "here", 1, silent_s=3600)
    await store.put_node(node, 0)
    assert await store.take(Job(task.id, 1)) is not None
    assert await dead(store, 0) == [], "each says for itself when it is dead"
    await store.put_node(replace(node, silent_s=1e-6), 0)
    assert await dead(store, 3600) == [Job(task.id, 1)], "as if its node were dead"
    await store.claim(task.id, 1, PLACE)
    await store.finish(task.id, 1, ENDINGS["exit"])
    assert await dead(store, 0) == [Job(task.id, 1)]
    await store.close_job(Job(task.id, 1))
    assert (jobs(address), await dead(store, 0)) == ([], [])
    await store.close()


async def test_x1_who_stops_waiting_for_an_end_does_not_undo_it(address: str) -> None:
    """Also before it was written: a node copies the output first."""
    store = await open_node(address, "nd_1")
    task = await queued(store)
    await store.take(Job(task.id, 1))
    await store.claim(task.id, 1, PLACE)
    copies, go_on = asyncio.Event(), asyncio.Event()

    async def copy(_: Task) -> None:
        copies.set()
        await go_on.wait()

    store.before_end.append(copy)
    waiting = asyncio.ensure_future(store.finish(task.id, 1, ENDINGS["exit"]))
    await copies.wait()
    waiting.cancel()
    await asyncio.wait([waiting])
    go_on.set()
    await store.close()
    again = await open_node(address, "nd_1")
    assert (await get(again, task.id)).state is State.FAILED
    await again.close()


async def test_x1_what_goes_wrong_before_an_end_is_reported_and_the_end_is_written(
    address: str,
) -> None:
    """A job has its folder in its hands. What comes after it is done all the same."""
    store = await open_node(address, "nd_1")
    said: list[str] = []
    store.report = said.append
    task = await queued(store)
    await store.take(Job(task.id, 1))
    await store.claim(task.id, 1, PLACE)

    async def fail(_: Task) -> None:
        raise OSError("the disk is broken")

    async def note(task: Task) -> None:
        said.append(task.id)

    store.before_end += [fail, note]
    ended = await store.finish(task.id, 1, ENDINGS["exit"])
    assert ended is not None
    assert ended.state is State.FAILED
    assert said == [f"{task.id}: before its end: OSError: the disk is broken", task.id]
    await store.close()


async def test_x2_what_a_node_was_brought_before_it_died_is_given_anew_when_it_is_back(
    address: str,
) -> None:
    """At once, and not when it would be taken for dead."""
    store = await open_node(address, "nd_1")
    task = await queued(store)
    run(address, "SELECT procrastinate_register_worker_v1()")
    worker = 1
    await store.put_node(Node("nd_1", NodeKind.WORKER, "here", 1, silent_s=3600), worker)
    run(address, f"SELECT procrastinate_fetch_job_v2(NULL, {worker})")
    assert await store.brought(worker) == [Job(task.id, 1)]
    await store.begin_again()
    assert jobs(address) == [(task.id, 1, "default", "todo")]
    with pytest.raises(psycopg.errors.ForeignKeyViolation):  # also a fetch that was under way
        run(address, f"SELECT procrastinate_fetch_job_v2(NULL, {worker})")
    await store.close()


async def test_x2_a_take_that_the_database_has_lost_is_made_with_the_claim(address: str) -> None:
    """It need not be on disk before the machine goes on. Of another machine it is no claim."""
    store, other = await open_node(address, "nd_1"), await open_node(address, "nd_2")
    task = await queued(store)
    assert await store.take(Job(task.id, 1)) is not None
    assert await other.claim(task.id, 1, PLACE) is None
    run(address, "UPDATE task SET node = NULL")
    assert await store.claim(task.id, 1, PLACE) is not None
    assert [each.id for each in await store.kept()] == [task.id], "it is seen to if it dies"
    assert await other.take(Job(task.id, 1)) is None
    await store.close()
    await other.close()
