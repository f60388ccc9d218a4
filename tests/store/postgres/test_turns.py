"""X10: owners and sessions take their turns at the engine, whatever is waiting."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence

import pytest

from backburner.store.postgres.admission import RESERVE
from backburner.store.postgres.store import PostgresStore
from tests.store.conformance.making import ENDINGS, PLACE
from tests.store.postgres.letting_in import end_one, let_in, machine, silence, start, take
from tests.store.postgres.test_database import run

MANY = """
    INSERT INTO task (id, owner, session, kind, title, spec, state, created_at, hand_over, events)
    SELECT 'many_' || n, 'hog', 'session_' || n %% 7, 'shell', 't', '{}', 'queued', n, 'x', 1
    FROM generate_series(%d, %d) n
"""


async def ended_owners(
    store: PostgresStore, address: str, node: str, count: int
) -> list[tuple[str, str]]:
    """Whose tasks end, one after the other."""
    found: list[tuple[str, str]] = []
    for _ in range(count):
        task = await store.get(await end_one(store, address, node))
        assert task is not None
        found.append((task.owner, task.session))
    return found


async def test_x10_an_owner_with_thousands_does_not_starve_the_next(
    store: PostgresStore, address: str
) -> None:
    node = machine(address, 2)
    run(address, MANY % (1, 10_000))
    await start(store, "hog")
    others = [await start(store, name) for name in ("ada", "zoe")]
    served = await ended_owners(store, address, node, RESERVE + 2 + 5)
    assert {"ada", "zoe"} <= {owner for owner, _ in served}
    assert [task.id for task in others if task.id in let_in(address)] == []


async def test_x10_owners_take_turns_and_so_do_their_sessions(
    store: PostgresStore, address: str
) -> None:
    node = machine(address, 1)
    for _ in range(20):
        await start(store, "ada", "one")
    for _ in range(10):
        await start(store, "ada", "two")
        await start(store, "bob", "chat")
    before = RESERVE + 1  # was let in before there was anybody else
    served = (await ended_owners(store, address, node, before + 12))[before:]
    assert Counter(owner for owner, _ in served) == {"ada": 6, "bob": 6}
    assert Counter(session for owner, session in served if owner == "ada") == {"one": 3, "two": 3}
    assert all(first != second for first, second in itertools.pairwise(served))


async def test_x10_priority_orders_what_is_an_owners_and_lets_nobody_push_in(
    store: PostgresStore, address: str
) -> None:
    node = machine(address, 1)
    for _ in range(RESERVE + 1):
        await start(store, "ada")
    low = await start(store, "ada", priority=-1)
    high = [await start(store, "ada", f"s{n}", priority=9) for n in range(3)]
    bob = await start(store, "bob")
    for _ in range(RESERVE + 1):
        await end_one(store, address, node)
    order = [await end_one(store, address, node) for _ in range(5)]
    assert order[-1] == low.id
    assert set(order[:4]) == {bob.id, *(task.id for task in high)}
    assert order.index(bob.id) <= 1, "whatever priority others give themselves"


async def test_x10_no_more_of_an_owner_are_let_in_than_may_run(
    store: PostgresStore, address: str
) -> None:
    machine(address, 50)
    await store.set_owner_limit("ada", 2)
    mine = [await start(store, "ada") for _ in range(5)]
    other = await start(store, "bob")
    assert let_in(address) == [mine[0].id, mine[1].id, other.id]
    await store.claim(mine[0].id, 1, PLACE)
    await store.finish(mine[0].id, 1, ENDINGS["exit"])
    assert mine[2].id in let_in(address)
    await store.set_owner_limit("ada", 4)
    assert {task.id for task in mine[1:]} <= set(let_in(address))


async def test_x10_who_died_has_no_places_for_which_others_would_wait(
    store: PostgresStore, address: str
) -> None:
    """The engine knows its workers for a day after that."""
    for _ in range(3):
        silence(address, machine(address, 64))
    node = machine(address, 4)
    for _ in range(60):
        await start(store, "hog")
    ada = await start(store, "ada")
    assert len(let_in(address)) == RESERVE + 4
    served = await ended_owners(store, address, node, RESERVE + 4)
    assert {owner for owner, _ in served} == {"hog"}, "they were let in before"
    assert ada.id in let_in(address)


def blocks(address: str) -> int:
    """How many pages one look at what may be let in touches."""
    plan = run(
        address,
        "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) "
        f"SELECT * FROM admit(1, 2, '{{}}', '{{}}', {RESERVE})",
    )
    text = "\n".join(str(line) for (line,) in plan)
    found: Sequence[str] = re.findall(r"(?:hit|read)=(\d+)", text.split("Planning")[0])
    return sum(map(int, found))


@pytest.mark.slow
async def test_x10_letting_in_costs_the_same_with_a_hundred_thousand_waiting(
    store: PostgresStore, address: str
) -> None:
    """Counted in pages, which are the same on every machine, busy or not."""
    machine(address, 10)
    await start(store, "ada")
    run(address, MANY % (1, 1_000))
    run(address, "ANALYZE task")

    def cost() -> int:
        run(address, "UPDATE node SET places = places + 5")
        return blocks(address)

    blocks(address)
    few = cost()
    run(address, MANY % (1_001, 100_000))
    run(address, "ANALYZE task")
    blocks(address)
    many = cost()
    assert many < 3 * few, f"{few} pages with 1,000 waiting, {many} with 100,000"


async def test_x10_what_waits_for_a_machine_that_is_away_takes_no_place_of_its_owner(
    store: PostgresStore, address: str
) -> None:
    here = machine(address, 4)
    await store.set_queue("gpu", 4)
    await store.set_owner_limit("ada", 2)
    away = [await start(store, "ada", queue="gpu") for _ in range(2)]
    plain = [await start(store, "ada") for _ in range(2)]
    assert {task.id for task in plain} <= set(let_in(address))
    assert await take(address, *plain, *away, name=here) == [True, True, False, False]
    run(address, "DELETE FROM procrastinate_jobs")
    await store.claim(plain[0].id, 1, PLACE)
    await store.finish(plain[0].id, 1, ENDINGS["exit"])
    assert let_in(address) == [away[0].id], "it has room now"
