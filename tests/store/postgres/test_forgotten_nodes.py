"""X2: of machines and applications that are gone for good nothing stays in the record."""

import math
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from backburner.model.home import Home
from backburner.model.node import Node, NodeKind
from backburner.runtime.contact import Contact
from backburner.runtime.dead_nodes import see_to_the_dead
from backburner.store.engine import Job, Silence, route_of_node
from backburner.store.postgres.node import NodeStore, open_node
from tests.store.conformance.making import ENDINGS, PLACE, get, queued
from tests.store.postgres.test_database import run


@pytest.fixture
async def store(address: str) -> AsyncIterator[NodeStore]:
    opened = await open_node(address, "nd_looks")
    yield opened
    await opened.close()


class AllAlong(Contact):
    """Who was in touch for a minute: whoever was seen silent is dead."""

    def lasted_s(self) -> float:
        return 60.0

    def dead(self, silent: Sequence[Silence]) -> list[Silence]:
        return [each for each in silent if each.dead]


async def _appears(store: NodeStore, name: str, kind: NodeKind) -> None:
    await store.put_node(Node(name, kind, "here", 1, silent_s=2), 0)


def _quiet(address: str, **for_how_long: str) -> None:
    """Of each node since when nothing was heard of it."""
    for name, ago in for_how_long.items():
        run(
            address,
            f"UPDATE node SET seen_at = clock_timestamp() - interval '{ago}' WHERE id = '{name}'",
        )


def _names(address: str, table: str = "node") -> list[str]:
    return [str(name) for (name,) in run(address, f"SELECT id FROM {table} ORDER BY id")]


async def test_x2_an_idle_application_that_was_killed_is_forgotten_though_nobody_has_work_of_it(
    store: NodeStore, address: str, tmp_path: Path
) -> None:
    for name in ("nd_dead", "nd_lives"):
        await _appears(store, name, NodeKind.APPLICATION)
    _quiet(address, nd_dead="10 seconds")
    home = Home(tmp_path, address)
    await see_to_the_dead(store, home, Contact(0, lambda: 0), (), print)
    assert _names(address) == ["nd_dead", "nd_lives"], "who looks was not in touch for that long"
    await see_to_the_dead(store, home, AllAlong(0, lambda: 0), (), print)
    assert _names(address) == ["nd_lives"]


async def test_x2_a_worker_is_missed_for_a_day_with_what_was_there_for_it_alone(
    store: NodeStore, address: str
) -> None:
    for name in ("nd_dead", "nd_missed", "nd_lives"):
        await _appears(store, name, NodeKind.WORKER)
        run(address, f"INSERT INTO node_name VALUES ('{name}', 'x', now() - interval '2 days')")
        run(
            address, f"INSERT INTO turn VALUES ('{route_of_node(name, 'default')}', '', 'somebody')"
        )
    routes = [route_of_node(name, "default") for name in ("nd_missed", "nd_lives")]
    for name, route in zip(("nd_missed", "nd_lives"), routes, strict=True):
        run(address, f"UPDATE node SET routes = '{{{route}}}' WHERE id = '{name}'")
    waits = await queued(store)
    run(address, f"UPDATE task SET let_in = 0 WHERE id = '{waits.id}'")
    run(address, "INSERT INTO contender VALUES ('node:gone', 'ada', true)")
    _quiet(address, nd_dead="25 hours", nd_missed="23 hours")
    await store.forget_nodes(math.inf)
    assert run(address, "SELECT route, owner FROM contender") == [("default", waits.owner)]
    assert _names(address) == ["nd_lives", "nd_missed"]
    assert _names(address, "node_name") == ["nd_lives", "nd_missed"]
    turns = run(address, "SELECT route FROM turn ORDER BY route")
    assert turns == [(route,) for route in sorted(routes)]


async def test_x2_what_a_dead_node_has_left_behind_is_given_up_and_then_so_is_the_node(
    store: NodeStore, address: str, tmp_path: Path
) -> None:
    dying = await open_node(address, "nd_dead")
    await _appears(store, "nd_dead", NodeKind.APPLICATION)
    task = await queued(store)
    assert await dying.take(Job(task.id, 1)) is not None
    assert await dying.claim(task.id, 1, PLACE) is not None
    assert await dying.finish(task.id, 1, ENDINGS["succeeded"], leftovers=1) is not None
    await dying.close()
    assert await store.silent(2, math.inf) == [], "it was just heard of"
    _quiet(address, nd_dead="60 days")
    await store.forget_nodes(math.inf)
    assert _names(address) == ["nd_dead"], "it has something left"
    (seen,) = await store.silent(2, math.inf)
    assert seen == Silence(Job(task.id, 1), 2, dead=True, node="nd_dead", begun=True)
    await see_to_the_dead(store, Home(tmp_path, address), AllAlong(0, lambda: 0), (), print)
    assert (await get(store, task.id)).leftovers == 0
    assert _names(address) == []


async def test_x2_what_a_node_has_left_behind_that_was_heard_of_since_is_not_given_up(
    store: NodeStore, address: str
) -> None:
    left = await open_node(address, "nd_lives")
    task = await queued(store)
    assert await left.take(Job(task.id, 1)) is not None
    assert await left.claim(task.id, 1, PLACE) is not None
    assert await left.finish(task.id, 1, ENDINGS["succeeded"], leftovers=1) is not None
    await left.close()
    await _appears(store, "nd_lives", NodeKind.WORKER)
    seen = Silence(Job(task.id, 1), 2, dead=True, node="nd_lives", begun=True)
    assert not await store.give_up_leftovers_of(seen, "not heard of")
    assert not await store.give_up_leftovers_of(
        Silence(Job(task.id, 1), 0, dead=True, node="nd_other", begun=True), "not heard of"
    )
    assert (await get(store, task.id)).leftovers == 1
