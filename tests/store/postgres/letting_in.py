"""Machines and tasks for tests of who is let into the engine."""

import itertools
from typing import Any

from backburner.model.order import Order
from backburner.model.task import Task
from backburner.store.engine import Job
from backburner.store.postgres.node import open_node
from backburner.store.postgres.store import PostgresStore
from backburner.store.protocol import Scope
from tests.store.conformance.making import ENDINGS, PLACE, PLENTY, new_task
from tests.store.postgres.test_database import run

SILENT_S = 3600
"""Longer than any test lasts: nobody says again that these live."""

_numbers = itertools.count(1)


def machine(address: str, places: int, *, routes: str = "default", name: str | None = None) -> str:
    """One that lives and takes on so many at once."""
    name = name or f"nd_{next(_numbers)}"
    run(
        address,
        f"WITH w AS (INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id) "
        f"INSERT INTO node (id, worker, routes, places, silent_s) SELECT '{name}', id, "
        f"'{{{routes}}}', {places}, {SILENT_S} FROM w ON CONFLICT (id) "
        "DO UPDATE SET worker = excluded.worker, places = excluded.places",
    )
    return name


def silence(address: str, name: str) -> None:
    """Nothing was heard of it for longer than it has said; it is not forgotten yet."""
    ago = f"clock_timestamp() - interval '{SILENT_S + 1} seconds'"
    run(address, f"UPDATE node SET seen_at = {ago} WHERE id = '{name}'")
    run(
        address,
        f"UPDATE procrastinate_workers SET last_heartbeat = {ago} "
        f"WHERE id = (SELECT worker FROM node WHERE id = '{name}')",
    )


def let_in(address: str) -> list[str]:
    """What the engine has, in the order that it takes it."""
    rows = run(address, "SELECT args ->> 'task' FROM procrastinate_jobs ORDER BY id")
    return [str(task) for (task,) in rows]


async def start(store: PostgresStore, owner: str, session: str = "chat", **order: Any) -> Task:
    new = new_task(scope=Scope(owner, session), order=Order(**order))
    return await store.create(new, limit=PLENTY)


async def end_one(store: PostgresStore, address: str, node: str) -> str:
    """A machine takes the oldest of what the engine has, and ends it."""
    task_id = let_in(address)[0]
    run(address, f"DELETE FROM procrastinate_jobs WHERE args ->> 'task' = '{task_id}'")
    run(address, f"UPDATE task SET node = '{node}' WHERE id = '{task_id}'")
    assert await store.claim(task_id, 1, PLACE) is not None
    assert await store.finish(task_id, 1, ENDINGS["succeeded"]) is not None
    return task_id


async def take(address: str, *tasks: Task, name: str) -> list[bool]:
    """A machine is brought these: which of them it has now."""
    store = await open_node(address, name)
    try:
        return [await store.take(Job(task.id, task.attempt)) is not None for task in tasks]
    finally:
        await store.close()
