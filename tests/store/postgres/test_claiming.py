"""X2: claims that go by the writer: the same answers, and none of them twice."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from backburner.model.events import EventKind
from backburner.model.states import State
from backburner.model.task import Task
from backburner.store.engine import Job
from backburner.store.postgres.admission import RESERVE
from backburner.store.postgres.claiming import Claimer, NotAnswered
from backburner.store.postgres.node import NodeStore, open_node
from backburner.store.postgres.writers_lock import WRITERS
from backburner.store.record.claims import Claim, Claimed
from tests.store.conformance.making import PLACE, PLENTY, get, new_task
from tests.store.postgres.test_database import run
from tests.waiting import wait_until_async


@pytest.fixture
async def node(address: str) -> AsyncIterator[NodeStore]:
    """One whose next claim is its own to ask."""
    store = await open_node(address, "nd_here")
    task = await queued(store)
    await until_idle(store)
    assert await store.claim(task.id, 1, PLACE) is not None
    await wait_until_async(lambda: backend(store) is not None)
    yield store
    await store.close()


async def queued(store: NodeStore) -> Task:
    return await store.create(new_task(), limit=PLENTY)


def backend(store: NodeStore) -> int | None:
    """The process of the database that answers its claims."""
    connection = getattr(getattr(store, "_claimer"), "_connection")  # noqa: B009 - nobody else asks
    return None if connection is None else connection.info.backend_pid


async def begins(store: NodeStore, task: Task) -> int:
    events = await store.events(task.id)
    return sum(event.kind is EventKind.STARTED for event in events)


async def until_idle(store: NodeStore) -> None:
    await wait_until_async(lambda: getattr(store, "_commits").is_idle)  # noqa: B009


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks that were claimed so."""
    ask, found = Claimer.claim, list[str]()

    async def note(claimer: Claimer, claim: Claim) -> Claimed | None:
        claimed = await ask(claimer, claim)
        found.append(claim.task)
        return claimed

    monkeypatch.setattr(Claimer, "claim", note)
    return found


async def test_x10_one_that_comes_alone_is_on_record_and_heard_of(
    node: NodeStore, address: str, asked: list[str]
) -> None:
    other = await open_node(address, "nd_other")
    heard: set[str] = set()
    for store in (node, other):
        store.on_news(lambda news: heard.update(() if news is None else news.of(EventKind.STARTED)))
    task = await queued(node)
    await until_idle(node)
    claimed = await node.claim(task.id, 1, PLACE)
    assert asked == [task.id]
    assert claimed == await get(node, task.id)
    assert (claimed and claimed.state, claimed and claimed.place) == (State.RUNNING, PLACE)
    assert await begins(node, task) == 1
    await wait_until_async(lambda: heard == {task.id})
    await other.close()


async def test_x2_what_another_one_has_is_not_claimed(
    node: NodeStore, address: str, asked: list[str]
) -> None:
    task = await queued(node)
    other = await open_node(address, "nd_other")
    assert await other.take(Job(task.id, 1)) is not None
    await until_idle(node)
    assert await node.claim(task.id, 1, PLACE) is None
    assert asked == [task.id]
    assert (await get(node, task.id)).state is State.QUEUED
    await other.close()


async def test_x2_a_claim_whose_answer_was_lost_is_known_again_and_not_made_twice(
    node: NodeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, lost = Claimer.claim, list[str]()

    async def lose(claimer: Claimer, claim: Claim) -> Claimed | None:
        assert await ask(claimer, claim) is not None
        lost.append(claim.task)
        raise NotAnswered(unsure=True)

    monkeypatch.setattr(Claimer, "claim", lose)
    task = await queued(node)
    await until_idle(node)
    claimed = await node.claim(task.id, 1, PLACE)
    assert lost == [task.id]
    assert claimed is not None
    assert await begins(node, task) == 1


async def test_x2_a_connection_that_was_cut_costs_no_claim_and_is_made_again(
    node: NodeStore, address: str, asked: list[str]
) -> None:
    cut = backend(node)
    run(address, f"SELECT pg_terminate_backend({cut})")
    task = await queued(node)
    await until_idle(node)
    assert await node.claim(task.id, 1, PLACE) is not None
    assert asked == []
    assert await begins(node, task) == 1
    assert backend(node) is None
    later = await queued(node)
    await until_idle(node)
    assert await node.claim(later.id, 1, PLACE) is not None
    await wait_until_async(lambda: backend(node) not in (None, cut))


async def test_x2_who_stops_waiting_undoes_nothing(
    node: NodeStore, address: str, asked: list[str]
) -> None:
    task = await queued(node)
    await until_idle(node)
    with psycopg.connect(address) as other:  # whose turn it is: a claim has to wait
        other.execute("SELECT pg_advisory_xact_lock(%s)", [WRITERS])
        waiting = asyncio.create_task(node.claim(task.id, 1, PLACE))
        await wait_until_async(lambda: is_asking(node))
        waiting.cancel()
        await asyncio.wait([waiting])
    await wait_until_async(lambda: begun(node, task))
    assert asked == []


def is_asking(store: NodeStore) -> bool:
    return not getattr(getattr(store, "_claimer"), "_under_way").done()  # noqa: B009


async def begun(store: NodeStore, task: Task) -> bool:
    return (await get(store, task.id)).state is State.RUNNING


async def test_in_a_crowd_they_are_written_together(node: NodeStore, asked: list[str]) -> None:
    tasks = await asyncio.gather(*(queued(node) for _ in range(RESERVE - 1)))
    claimed = await asyncio.gather(*(node.claim(task.id, 1, PLACE) for task in tasks))
    assert all(each is not None for each in claimed)
    assert len(asked) < len(tasks) / 2
    assert [await begins(node, task) for task in tasks] == [1] * len(tasks)
