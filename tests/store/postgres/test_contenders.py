"""X10: who has reached their limit is not asked again until they have room, and then they are."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from backburner.model import clock
from backburner.model.order import Order
from backburner.store.engine import Job
from backburner.store.postgres.node import NodeStore, open_node
from backburner.store.postgres.store import PostgresStore
from backburner.store.protocol import Scope
from tests import postgres_server
from tests.store.conformance.making import ENDINGS, PLACE, PLENTY, new_task
from tests.store.postgres.letting_in import let_in, machine, start
from tests.store.postgres.test_database import run
from tests.store.postgres.test_turns import blocks

pytestmark = [pytest.mark.slow]

AT_THEIR_LIMIT = """
    INSERT INTO task (id, owner, session, kind, title, spec, created_at, hand_over, events, state,
                      boot_id, started_at)
    SELECT s.state || n, 'owner_' || n, 'chat', 'shell', 't', '{}', n, 'x', 1, s.state, s.boot, s.at
    FROM generate_series(%d, %d) n,
         (VALUES ('running', 'boot', 5), ('queued', NULL, NULL)) s (state, boot, at)
"""
"""One that runs and one that waits, of so many owners."""


async def test_x10_letting_in_costs_the_same_with_thousands_of_owners_at_their_limit(
    store: PostgresStore, address: str
) -> None:
    """Nobody asks again of each whether it has room."""
    machine(address, 10)
    await store.set_owner_limit(None, 1)

    async def cost(first: int, last: int) -> int:
        run(address, AT_THEIR_LIMIT % (first, last))
        for table in ("task", "contender"):
            run(address, f"VACUUM ANALYZE {table}")
        blocks(address)
        new = await start(store, f"new_{last}")
        assert new.id in let_in(address)
        return blocks(address)

    few, many = await cost(1, 20), await cost(21, 3_000)
    assert many < 3 * few, f"{few} pages with 20 owners, {many} with 3,000"
    run(address, "UPDATE task SET state = 'queued', let_in = 1 WHERE id = 'running2999'")
    await store.request_stop("running2999", Scope("owner_2999"), 0)
    assert "queued2999" in let_in(address), "it has room now"


STEPS = 120
RUNNING = "SELECT id, attempt FROM task WHERE state = 'running' ORDER BY seq"
WAITING = "SELECT id, owner FROM task WHERE state = 'queued' AND node IS NULL ORDER BY seq"
ALL_CONTEND = """
    INSERT INTO contender (route, owner) SELECT DISTINCT route, owner FROM task
    WHERE state = 'queued' AND NOT held AND let_in < attempt
    ON CONFLICT (route, owner) DO UPDATE SET full_up = false
"""

Step = Callable[[NodeStore], Awaitable[Any]]


@pytest.mark.parametrize("seed", range(4))
async def test_x10_nobody_who_has_room_again_is_passed_over(address: str, seed: int) -> None:
    """The same life twice: in one record everybody is looked at each time."""
    forgets = postgres_server.server().create()
    stores = [await open_node(each, "nd_here") for each in (address, forgets)]
    for each in (address, forgets):
        machine(each, 6, name="nd_here", routes="default,gpu")
    for store in stores:
        await store.set_queue("gpu", 3)
        await store.set_owner_limit(None, 2)
    chance = random.Random(seed)
    for number in range(STEPS):
        what, step = _step(chance, address)
        run(forgets, ALL_CONTEND)
        for store in stores:
            await step(store)
        rows = "SELECT id, state, attempt, let_in, node FROM task ORDER BY seq"
        assert run(address, rows) == run(forgets, rows), f"{number}: {what}"
    for store in stores:
        await store.close()
    postgres_server.server().drop(forgets)


def _step(chance: random.Random, address: str) -> tuple[str, Step]:
    """What happens next, by what there is."""
    jobs = let_in(address)
    running = [(str(task), int(str(number))) for task, number in run(address, RUNNING)]
    waiting = [(str(task), str(owner)) for task, owner in run(address, WAITING)]
    kind = chance.choice(
        [
            *["start"] * 4,
            *["limit"],
            *["begin"] * 4 * bool(jobs),
            *["take"] * 2 * bool(jobs),
            *["finish", "finish", "requeue", "fail_try"] * bool(running),
            *["stop"] * bool(waiting),
        ]
    )
    if kind == "start":
        queue = chance.choice([None, None, "gpu"])
        order = Order(queue=queue, retries=1, priority=chance.choice([0, 0, 5]))
        new = new_task(scope=Scope(chance.choice("abcd")), order=order)
        return kind, lambda store: store.create(new, limit=PLENTY)
    if kind == "limit":
        owner, most = chance.choice([*"abcd", None]), chance.choice([None, 1, 2, 3])
        return kind, lambda store: store.set_owner_limit(owner, most)
    if kind in ("begin", "take"):
        task_id = chance.choice(jobs)
        ((found,),) = run(address, f"SELECT attempt FROM task WHERE id = '{task_id}'")
        attempt = int(str(found))

        async def fetch(store: NodeStore) -> None:
            run(
                store.address, f"DELETE FROM procrastinate_jobs WHERE args ->> 'task' = '{task_id}'"
            )
            if kind == "take":
                await store.take(Job(task_id, attempt))
            elif await store.claim(task_id, attempt, PLACE) is None:
                await store.give_back(Job(task_id, attempt))

        return kind, fetch
    if kind == "stop":
        task_id, owner = chance.choice(waiting)
        return kind, lambda store: store.request_stop(task_id, Scope(owner), 0)
    task_id, attempt = chance.choice(running)
    if kind == "finish":
        return kind, lambda store: store.finish(task_id, attempt, ENDINGS["succeeded"])
    if kind == "requeue":
        return kind, lambda store: store.requeue(task_id, attempt, "its machine died")
    soon = clock.now()
    return kind, lambda store: store.fail_try(task_id, attempt, ENDINGS["exit"], soon)
