"""X10: what one owner has had costs nothing when the next task is started or looked at."""

import re
from collections.abc import Sequence

import psycopg
import pytest

from backburner.model.states import Kind
from backburner.store.postgres.connection import OWNER, TENANT
from backburner.store.postgres.queries import query
from backburner.store.postgres.store import PostgresStore
from backburner.store.protocol import Scope
from tests.store.conformance.making import ENDINGS, PLACE, queued, running
from tests.store.postgres.test_database import run

EARLIER = """
    WITH made AS (
        INSERT INTO task (id, owner, session, kind, title, spec, state, created_at, finished_at)
        SELECT 'old_' || n, 'ada', 'chat', 'shell', 't', '{}', 'succeeded', n, n
        FROM generate_series(%d, %d) n RETURNING seq, id)
    INSERT INTO signal (key, task, owner, session, kind, text, data, state, channel, created_at)
    SELECT id || ':end', seq, 'ada', 'chat', 'completed', '', '{}', 'pending', 'inbox', 1 FROM made
"""


@pytest.mark.parametrize("what", ["looked at", "started"])
async def test_x10_an_owner_with_many_tasks_and_signals_pays_nothing_for_them(
    store: PostgresStore, address: str, what: str
) -> None:
    """Counted in pages, which are the same on every machine, busy or not."""
    task = await queued(store)
    await store.claim(task.id, 1, PLACE)
    await store.finish(task.id, 1, ENDINGS["succeeded"])
    look = query("task_get").text.decode().replace("%(id)s", f"'{task.id}'").rstrip(";\n")
    fit = """SELECT all_fit('[["new"]]', '[["ada", "chat", "shell", false, 10]]')"""
    asked = look if what == "looked at" else fit
    run(address, EARLIER % (1, 2_000))
    run(address, "ANALYZE")
    few = pages(address, asked)
    run(address, EARLIER % (2_001, 20_000))
    run(address, "ANALYZE")
    assert pages(address, asked) <= few + 5, "an index may be a page deeper"


WAITING = """
    INSERT INTO task (id, owner, session, kind, title, spec, state, created_at)
    SELECT 'bg_w' || n, 'ada', 'chat' || n %% 10, 'shell', 't', '{}', 'queued', n
    FROM generate_series(%d, %d) n
"""


async def test_x10_d8_what_waits_or_was_costs_nothing_when_children_of_ended_agents_are_looked_for(
    store: PostgresStore, address: str
) -> None:
    """Every machine does that now and then."""
    agent = await running(store, kind=Kind.AGENT)
    await queued(store, scope=Scope(agent.owner, agent.id))
    assert await store.finish(agent.id, 1, ENDINGS["succeeded"]) is not None
    look = query("task_outlived_agents").text.decode().rstrip(";\n")
    run(address, WAITING % (1, 2_000))
    run(address, EARLIER % (1, 2_000))
    run(address, "ANALYZE")
    few = pages(address, look, everybody=True)
    run(address, WAITING % (2_001, 20_000))
    run(address, EARLIER % (2_001, 20_000))
    run(address, "ANALYZE")
    assert pages(address, look, everybody=True) <= few * 2, "an index may be a page deeper"
    assert [each.id for each in await store.outlived_agents()] == [agent.id]


def pages(address: str, asked: str, *, everybody: bool = False) -> int:
    """How many one look touches, for whom sees what is of this owner, or of everybody."""
    with psycopg.connect(address, autocommit=True, options="-c search_path=backburner") as raw:
        raw.execute(f"SELECT set_config('{OWNER}', 'ada', false)".encode())
        if not everybody:
            raw.execute(f"SET ROLE {TENANT}".encode())
        raw.execute(asked.encode())  # with what is read once by each connection
        plan = raw.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {asked}".encode()).fetchall()
    text = "\n".join(str(line) for (line,) in plan)
    found: Sequence[str] = re.findall(r"(?:hit|read)=(\d+)", text.split("Planning")[0])
    assert found
    return sum(map(int, found))
