"""X10: no statement crosses owners, whatever it forgets to say: the database sees to that."""

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from backburner.model import clock
from backburner.model.channels import Channel, ChannelKind
from backburner.model.errors import Conflict
from backburner.model.events import EventKind
from backburner.model.order import Order
from backburner.model.schedule import NewSchedule
from backburner.model.signals import SignalKind
from backburner.model.states import Kind, State
from backburner.store.postgres.connection import TENANT, Connection, connect
from backburner.store.postgres.mirror import Written
from backburner.store.postgres.pieces import Held, growth
from backburner.store.postgres.queries import _all  # pyright: ignore[reportPrivateUsage]
from backburner.store.postgres.reader import Reader, TenantReader
from backburner.store.postgres.statements import Statements
from backburner.store.postgres.store import PostgresStore
from backburner.store.protocol import Facts, Output, Scope
from backburner.store.record.leases import BootClock
from tests.store.conformance.making import (
    ADA,
    BOB,
    ENDINGS,
    PLACE,
    PLENTY,
    get,
    new_task,
    running,
)
from tests.store.postgres.test_database import run

MARK = "only-for-adas-eyes"
ID = "bg_of_ada"


@pytest.fixture
async def hers(store: PostgresStore) -> PostgresStore:
    """A record in which everything that can be of an owner is Ada's, and says so."""
    await store.add_channel(Channel("hook", "ada", None, ChannelKind.COMMAND, MARK))
    await store.create(new_task(ID, title=MARK, spec={"x": MARK, "wake": "on_activity"}), limit=9)
    await store.claim(ID, 1, PLACE)
    await store.note(ID, 1, EventKind.DETAIL, Facts(detail=MARK))
    await store.ask(ID, 1, "q1", MARK)
    await store.send_message(ID, ADA, MARK)
    said = growth("output", Held(), [(0, MARK.encode())], len(MARK), head=9, tail=9)
    await store.put_output(Written(ID, 1, [said], Output(len(MARK))))
    assert await store.send_input(ID, 1, ADA, MARK.encode()) is not None
    await store.set_owner_limit("ada", 50)
    await store.create(new_task("bg_ended", title=MARK), limit=9, ending=ENDINGS["spawn"])
    await store.create(new_task("bg_waits", title=MARK), limit=9)
    await store.wish(ADA, [SignalKind.FAILED])
    await store.end_session(ADA)
    later = clock.now() + 3600 * clock.SECOND
    await store.add_schedule(
        NewSchedule(
            "sc_of_ada", "ada", "chat", Kind.SHELL, MARK, {}, "UTC", later, later, cron="* * * * *"
        ),
        limit=9,
    )
    run(
        store_address(store),
        "INSERT INTO firing (schedule, nominal_at, at, task) "
        f"SELECT seq, 1, 1, '{ID}' FROM schedule",
    )
    return store


def store_address(store: PostgresStore) -> str:
    return store._readers._address  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def as_bob(hers: PostgresStore, address: str) -> Iterator[TenantReader]:
    leases = BootClock("database")
    everyone = Reader(connect(address), leases)
    reader = TenantReader(connect(address, role=TENANT), leases, everyone)
    reader.owner = "bob"
    yield reader
    reader.close()
    everyone.close()


SEQ = {"activity_last": 1, "input_outcome": 1}
"""Statements whose `task` is a number."""


def values_of(name: str, text: bytes) -> dict[str, Any]:
    """What Ada would give, for every value of a statement."""
    now = clock.now()
    known: dict[str, Any] = {
        "owner": "ada", "session": "chat", "id": ID, "prefix": "", "limit": 100, "before": 2**62,
        "states": "[]", "after": -1, "after_seq": -1, "now": now + 7200 * clock.SECOND,
        "latest": now + 7300 * clock.SECOND, "kind": None, "boot": "database", "boot_now": 2**62,
        "channel": None, "attempt": 1, "had": "[]", "ids": f'["{ID}"]', "in_queue": False,
        "parent": ID, "since": 0, "schedule": "sc_of_ada", "seq": 0, "task": ID, "node": "nd_1",
        "worker": "w", "name": "hook", "number": 1, "longer_s": 0.0, "silent_s": 0.0,
        "contact_s": 0.0,
        "place": "", "each": 9, "passing_over": "[]", "consumer": "c", "with_room": False,
        "sorts": [["ada", "chat", "shell", False]], "owners": [["ada"]],
        "wanted": [[ID, 1, ["running", "input_required", "queued"]]],
        "queues": "[]", "tasks": "[]", "attempts": "[]", "job_keys": "[]",
        "streams": "[]", "beginnings": "[]", "totals": "[]",
    }  # fmt: skip
    if name == "tasks_before_begin":
        known["ids"] = [ID]
    if name == "task_newest_active":
        known["states"] = json.dumps(["queued", "running", "input_required"])
    if name.startswith("schedule"):
        known["id"], known["states"] = "sc_of_ada", "[]"
    if name == "firings_of_schedule":
        known["id"] = "sc_of_ada"
    if name in SEQ:
        known["task"] = known["seq"] = SEQ[name]
    wanted = {each.decode() for each in re.findall(rb"%\((\w+)\)s", text)}
    return {key: known[key] for key in wanted}


def shown(reader: Reader, name: str) -> str:
    """Everything that a statement gives, in one text; the refusal of the database is none."""
    query = _all()[name]
    values = values_of(name, query.text)
    statements = reader._statements  # pyright: ignore[reportPrivateUsage]
    many = any(isinstance(value, list) for value in values.values())
    if isinstance(reader, TenantReader) and not many:
        rows = reader.rows(name, **values)
    else:
        if isinstance(reader, TenantReader):
            reader.rows("task_get", id=ID)  # sets the owner
        rows = (statements.many if many else statements.rows)(name, **values)
    return repr(rows)


def test_x10_every_statement_that_reads_shows_nothing_of_another_owner(
    as_bob: TenantReader, address: str
) -> None:
    """With Ada's name and ids in it, as if whoever wrote it had mixed them up."""
    with connect(address) as connection:
        everyone = Reader(connection, BootClock("database"))
        readers = [name for name, query in _all().items() if not query.writes]
        seen = 0
        for name in readers:
            if name.startswith(("jobs_", "check_")):
                continue
            seen += MARK in shown(everyone, name) or ID in shown(everyone, name)
            try:
                told = shown(as_bob, name)
            except psycopg.errors.InsufficientPrivilege:
                continue
            if name == "task_unknown":
                continue  # says back what was asked
            if name == "task_waits":
                continue  # of everyone: who reads looks up their own
            assert MARK not in told, name
            assert ID not in told, name
        assert seen > 20, "the record has hardly anything to hide"


TABLES = (
    "task", "event", "signal", "question", "message", "mirror", "mirror_piece", "channel",
    "wish", "ended_session", "schedule", "firing", "artifacts", "input", "owner_limit",
    "attachment",
)  # fmt: skip
HIDDEN = (
    "secret", "token", "node", "worker", "commitment", "procrastinate_jobs", "turn", "precedence",
    "artifacts_left", "format", "node_name", "contender",
)  # fmt: skip
NOBODYS = ("queue", "offer")
"""What everybody may read, and nobody may write."""

OF_OWNERS = """
    WITH RECURSIVE of_owner (oid) AS (
        SELECT attrelid FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'backburner'::regnamespace AND c.relkind = 'r'
          AND a.attname IN ('owner', 'session') AND NOT a.attisdropped
        UNION
        SELECT f.conrelid FROM pg_constraint f JOIN of_owner o ON f.confrelid = o.oid
        WHERE f.contype = 'f')
    SELECT c.relname, c.relrowsecurity,
           array(SELECT p.polname::text FROM pg_policy p WHERE p.polrelid = c.oid),
           has_table_privilege('backburner_tenant', c.oid, 'SELECT, INSERT, UPDATE, DELETE')
    FROM of_owner JOIN pg_class c USING (oid) ORDER BY 1
"""
"""Every table that says whose a row is, or refers to one that does."""


def test_x10_every_table_with_something_of_an_owner_has_a_policy(
    store: PostgresStore, address: str
) -> None:
    found = run(address, OF_OWNERS)
    assert {"task", "event", "input", "token"} <= {name for name, *_ in found}
    for name, secured, policies, reachable in found:
        assert secured, f"{name} has no row level security"
        assert bool(policies) == reachable, f"{name}: a policy, or nothing at all"
    every = run(address, "SELECT tablename FROM pg_tables WHERE schemaname = 'backburner'")
    ours = {str(name) for (name,) in every if not str(name).startswith("procrastinate_")}
    assert ours == {*TABLES, *NOBODYS, *HIDDEN} - {"procrastinate_jobs"}, "each is tried below"


def test_x10_what_is_everybodys_is_read_only(store: PostgresStore, address: str) -> None:
    for name in NOBODYS:
        may = f"has_table_privilege('{TENANT}', 'backburner.{name}', 'INSERT, UPDATE, DELETE')"
        assert run(address, f"SELECT {may}") == [(False,)], name


@pytest.fixture
def raw(hers: PostgresStore, address: str) -> Iterator[Connection]:
    with connect(address, role=TENANT) as connection:
        connection.execute("SELECT set_config('backburner.owner', 'bob', false)")
        yield connection


@pytest.mark.parametrize("table", TABLES)
def test_x10_a_wrong_query_finds_nothing_of_others(raw: Connection, table: str) -> None:
    count = f"SELECT count(*) FROM {table}".encode()
    assert raw.execute(count).fetchall() == [(0,)]
    raw.execute(b"SELECT set_config('backburner.owner', 'ada', false)")
    (found,) = raw.execute(count).fetchall()
    assert found[0] > 0 or table in ("artifacts", "attachment"), "there is something to find"
    raw.execute(b"SELECT set_config('backburner.owner', '', false)")
    assert raw.execute(count).fetchall() == [(0,)], "who says nothing sees nothing"


@pytest.mark.parametrize("table", HIDDEN)
def test_x10_what_is_no_owners_is_not_shown_to_them(raw: Connection, table: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        raw.execute(f"SELECT * FROM {table}".encode())


@pytest.mark.parametrize(
    "wrong",
    [
        "UPDATE task SET title = 'mine'",
        "UPDATE signal SET text = 'mine'",
        "UPDATE question SET answer = 'yes', answered_at = 1",
        "UPDATE schedule SET title = 'mine'",
        "UPDATE wish SET kinds = '[]'",
        "DELETE FROM channel",
        "DELETE FROM wish",
        "DELETE FROM ended_session",
        "DELETE FROM task",
        "DELETE FROM input",
        "INSERT INTO input (task, attempt, data) VALUES (1, 1, 'do it')",
        "INSERT INTO event (task, number, at, kind, data) VALUES (1, 99, 1, 'detail', '{}')",
        "INSERT INTO message (task, number, text, sent_at) VALUES (1, 99, 'do it', 1)",
        (
            "INSERT INTO signal (key, task, owner, session, kind, text, data, state, channel, "
            "created_at) VALUES ('bg_waits:end', 1, 'bob', 'chat', 'failed', '', '{}', 'pending', "
            "'inbox', 1)"
        ),
        "INSERT INTO wish (owner, session, kinds) VALUES ('ada', 'other', '[]')",
        "INSERT INTO queue (name, width) VALUES ('mine', 1)",
        "SET ROLE postgres",
    ],
)
def test_x10_a_wrong_statement_changes_nothing_of_others(raw: Connection, wrong: str) -> None:
    try:
        changed = raw.execute(wrong.encode()).rowcount
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue):
        return
    assert changed == 0


async def test_x10_writes_of_several_owners_in_one_transaction_are_apart(
    hers: PostgresStore, address: str
) -> None:
    with connect(address) as connection:
        statements = Statements(connection)
        statements.begin()
        for owner, found in (("bob", 0), ("ada", 1), (None, 1), ("bob", 0)):
            statements.act_for(owner)
            assert len(statements.rows("task_get", id=ID)) == found
        with contextlib.suppress(ZeroDivisionError), statements.undone_where_it_fails():
            statements.act_for("ada")
            raise ZeroDivisionError
        statements.act_for("ada")
        assert len(statements.rows("task_get", id=ID)) == 1
        statements.command(b"ROLLBACK")


AS_WHOM = """
    CREATE TABLE as_whom (task TEXT, owner TEXT, role TEXT, acts_for TEXT);
    GRANT INSERT ON as_whom TO backburner_tenant;
    CREATE FUNCTION note_whom() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO as_whom VALUES (NEW.id, NEW.owner, current_user, present_owner());
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER begins AFTER INSERT ON task FOR EACH ROW EXECUTE FUNCTION note_whom();
    CREATE TRIGGER ends AFTER UPDATE ON task FOR EACH ROW
    WHEN (NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL) EXECUTE FUNCTION note_whom();
"""


async def test_x10_what_begins_and_ends_together_is_written_for_each_owner_apart(
    store: PostgresStore, address: str
) -> None:
    run(address, AS_WHOM)
    owners = [f"owner{n % 3}" for n in range(9)]
    place = replace(PLACE, worker="w")
    begun = await asyncio.gather(
        *(
            store.begin(new_task(scope=Scope(owner, "chat"), kind=Kind.TOOL), place, limit=PLENTY)
            for owner in owners
        )
    )
    ended = await asyncio.gather(
        *(store.finish(task.id, 1, ENDINGS["succeeded"]) for task, _ in begun)
    )
    assert [task and task.owner for task in ended] == owners
    written = run(address, "SELECT task, owner, role, acts_for FROM as_whom ORDER BY task")
    assert len(written) == 18
    assert {(role, acts_for == owner) for _, owner, role, acts_for in written} == {(TENANT, True)}
    for task, _ in begun:
        assert len(await store.signals(Scope(task.owner, "chat"), task=task.id)) == 1


def write(statements: Statements, name: str, rows: list[list[Any]]) -> None:
    statements.many(name, rows=rows)
    statements.send()


def test_x10_an_end_that_is_mixed_up_is_refused(hers: PostgresStore, address: str) -> None:
    with connect(address) as connection:
        statements = Statements(connection)
        for name, rows in (
            ("events_insert", [[1, 99, 1, "detail", "{}"]]),
            ("tasks_begin", [[99, "bg_x", "ada", "chat", "tool", "t", "{}", 1, *[None] * 8, 0]]),
        ):
            statements.begin()
            with pytest.raises(psycopg.errors.InsufficientPrivilege), statements.acting_for("bob"):
                write(statements, name, rows)
            statements.roll_back()
        statements.begin()
        with statements.acting_for("bob"):
            ending = [1, "succeeded", 9, 0, *[None] * 5, 0, 0, 0]
            assert statements.many("tasks_end", rows=[ending]) == []
        assert statements.many("tasks_end", rows=[ending]) != [], "of all again"
        statements.roll_back()


async def test_x10_an_id_of_somebody_else_is_a_conflict_and_tells_nothing(
    hers: PostgresStore,
) -> None:
    with pytest.raises(Conflict, match="cannot be used for this task"):
        await hers.create(new_task(ID, scope=BOB), limit=PLENTY)
    later = clock.now() + 3600 * clock.SECOND
    theirs = NewSchedule(
        "sc_of_ada", "bob", "chat", Kind.SHELL, "t", {}, "UTC", later, later, cron="* * * * *"
    )
    with pytest.raises(Conflict, match="cannot be used for this schedule"):
        await hers.add_schedule(theirs, limit=9)


async def test_x10_what_a_task_waits_for_is_known_though_it_is_others(store: PostgresStore) -> None:
    await store.set_owner_limit(None, 1)
    await store.set_queue("q", 1)
    first = await running(store, scope=BOB)
    waiting = await store.create(new_task(scope=BOB), limit=PLENTY)
    taken = await store.create(new_task(order=Order(queue="q")), limit=PLENTY)
    await store.claim(taken.id, 1, PLACE)
    behind = await store.create(new_task(scope=BOB, order=Order(queue="q")), limit=PLENTY)
    found = await store.get(behind.id, BOB)
    assert found is not None
    assert found.wait is not None
    assert (found.wait.queue, found.wait.place, found.wait.owner_limit) == ("q", 1, 1)
    assert (await get(store, waiting.id)).state is State.QUEUED
    assert first.owner == "bob"
