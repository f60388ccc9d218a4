"""X2, X10: a record that cannot be written, for a while or for good: who needs it says why."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from backburner import Backburner, Settings, Task
from backburner.model.events import EventKind
from backburner.model.states import State
from backburner.store.protocol import Facts
from tests import postgres_server
from tests.cli.program import Program
from tests.nodes.workers import WorkerProcess
from tests.nursery import Nursery
from tests.pgbouncer import pgbouncer
from tests.postgres_server import Server
from tests.waiting import pause_async, wait_until_async

pytestmark = [pytest.mark.slow]

SILENT_S = 8.0
"""A machine that is not heard of for so long is dead; a busy one is heard of."""


@pytest.fixture
def reader(address: str) -> Iterator[str]:
    """The address for somebody who has every right, and whose sessions only read."""
    server, database = postgres_server.server(), address.rpartition("/")[2]
    name = f"reader_{database}"
    server.run(f"CREATE ROLE {name} SUPERUSER LOGIN")
    server.run(f"ALTER ROLE {name} SET default_transaction_read_only = on")
    yield address.replace("//test@", f"//{name}@")
    server.run(f"DROP ROLE {name}")


def test_x10_who_may_only_read_is_told_so_and_may_look(backburner: Program, reader: str) -> None:
    here = ("--home", reader)
    assert backburner("ls", *here).code == 0
    refused = backburner("run", *here, "--", "true")
    assert (refused.code, "can only be read" in refused.err) == (1, True), refused
    assert "hint: " in refused.err
    assert "default_transaction_read_only" in refused.err
    for command in (["doctor"], ["db", "check"]):
        told = backburner(*command, "--json", *here)
        assert told.code == 1, told
        (finding,) = [each for each in told.json if each["check"] == "database"]
        assert (finding["level"], "may only read" in finding["text"]) == ("fail", True)
    worker = backburner("worker", "--database", reader)
    assert (worker.code, "can only be read" in worker.err) == (1, True), worker


def test_x10_who_may_look_at_tables_and_no_more_is_told_what_is_missing(
    backburner: Program, address: str
) -> None:
    """Policies hide the tasks, and not the jobs of the engine."""
    server, name = postgres_server.server(), f"looks_{address.rpartition('/')[2]}"
    server.run(f"CREATE ROLE {name} LOGIN")
    backburner("run", "--", "true")
    with psycopg.connect(address, autocommit=True) as connection:
        for right in ("USAGE ON SCHEMA", "SELECT ON ALL TABLES IN SCHEMA"):
            connection.execute(f"GRANT {right} backburner TO {name}".encode())
        theirs = address.replace("//test@", f"//{name}@")
        for command in (["ls"], ["db", "check"], ["doctor"], ["worker"]):
            told = backburner(*command, "--database" if command == ["worker"] else "--home", theirs)
            assert told.code == 1, told
            assert "does not see the record" in told.out + told.err
            assert "GRANT owner TO" in told.out + told.err
            assert "a promise is broken" not in told.out
        connection.execute(f"DROP OWNED BY {name}".encode())
    server.run(f"DROP ROLE {name}")


async def test_x2_a_worker_waits_while_its_record_can_only_be_read_and_says_why(
    own_server: Server, new_home: Callable[[], Path], home: Path
) -> None:
    """As after a failover: who has had the record open waits until it is the one again."""
    address = own_server.create()
    own_server.run("CREATE ROLE fails SUPERUSER LOGIN")
    worker = WorkerProcess(address.replace("//test@", "//fails@"), new_home())

    def only_reads(setting: str) -> None:
        own_server.run(f"ALTER ROLE fails SET default_transaction_read_only = {setting}")
        own_server.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'fails'"
        )

    try:
        async with Backburner.open(address) as bb:
            only_reads("on")
            task = await bb.session("chat").run("echo done")
            await wait_until_async(lambda: "read-only transaction" in worker.said())
            await asyncio.to_thread(worker.kill)
            worker.begin()
            await wait_until_async(lambda: "can only be read" in worker.said())
            assert worker.process.poll() is None, "it had the record before"
            only_reads("off")
            await task.wait(timeout=60)
            assert task.state is State.SUCCEEDED, worker.said()
        assert "Database error" not in worker.said()
    finally:
        worker.kill()


def test_x2_a_server_that_follows_another_is_refused_and_nobody_waits_for_its_news(
    own_server: Server,
    home: Path,
    new_home: Callable[[], Path],
    nursery: Nursery,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    address = own_server.create()
    own_server.stop()
    (own_server.data / "standby.signal").touch()
    own_server.start()
    backburner = Program(nursery)
    for command in (["run", "--home", address, "--", "true"], ["worker", "--database", address]):
        refused = backburner(*command)
        assert (refused.code, "follows another" in refused.err) == (1, True), refused
        assert "hint: give the address" in refused.err
    assert "only follows another one" in backburner("db", "check", "--home", address).out


@pytest.mark.parametrize("over", ["itself", "a pool of sessions", "a pool of transactions"])
async def test_x2_nothing_is_read_from_a_server_that_only_follows_another_one(
    own_server: Server, home: Path, tmp_path: Path, over: str
) -> None:
    """What was just written may not be there, and its heartbeats are old: everybody seems dead.

    A pooler repeats what the server has said of itself before.
    """
    address = own_server.create()
    mode = "session" if over == "a pool of sessions" else "transaction"
    with pgbouncer(address, mode, tmp_path, "server_login_retry = 0") as pooled:
        settings = Settings(pooler=pooled if over == "a pool of transactions" else "")
        there = pooled if over == "a pool of sessions" else address
        async with Backburner.open(there, settings=settings) as bb:
            session = bb.session("chat")
            task = await session.run("true")
            assert await session.tasks()
            await asyncio.to_thread(own_server.stop)
            (own_server.data / "standby.signal").touch()
            await asyncio.to_thread(own_server.start)
            reading = asyncio.create_task(session.tasks())
            assert not (await asyncio.wait([reading], timeout=2))[0]
            own_server.run("SELECT pg_promote()")
            assert [each.id for each in await reading] == [task.id]


async def test_x2_of_several_servers_the_one_is_taken_that_is_written_to(
    own_server: Server, address: str, home: Path
) -> None:
    """As after a failover, where the server that comes first follows the other one now."""
    own_server.stop()
    (own_server.data / "standby.signal").touch()
    own_server.start()
    first, second = (urlsplit(each) for each in (own_server.address("postgres"), address))
    both = f"postgresql://test@127.0.0.1:{first.port},127.0.0.1:{second.port}{second.path}"
    async with Backburner.open(both) as bb:
        task = await bb.session("chat").run("true")
        assert [each.id for each in await bb.session("chat").tasks()] == [task.id]


async def test_x2_nobody_is_dead_where_nobody_could_write_that_it_lives(
    own_server: Server, home: Path, new_home: Callable[[], Path]
) -> None:
    """As where the storage is full: the database is there, and heartbeats are not in it."""
    address = own_server.create()
    silent = ("--dead-after", f"{SILENT_S:g}")
    workers = [
        WorkerProcess(address, new_home(), *silent, "--tools", "tests.nodes.shop") for _ in range(2)
    ]

    def only_reads(setting: str) -> None:
        with psycopg.connect(own_server.address("postgres"), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            change = f"ALTER SYSTEM SET default_transaction_read_only = {setting}"
            connection.execute(change.encode())
            connection.execute("SELECT pg_reload_conf()")

    try:
        async with Backburner.open(address, settings=Settings(dead_after_s=SILENT_S)) as bb:
            session = bb.session("chat")
            tasks = [await session.run("sleep 600") for _ in range(4)]
            for task in tasks:
                await wait_until_async(partial(runs, task))
            await pause_async(1.2 * SILENT_S, because="who judges was in touch for so long before")
            only_reads("on")
            await pause_async(2 * SILENT_S, because="whoever is not heard of for so long is dead")
            only_reads("off")
            await (await session.run("true")).wait(timeout=60)
            await pause_async(SILENT_S, because="somebody may be about to be taken for dead")
            assert {(await task.refresh()).state for task in tasks} == {State.RUNNING}
            for task in tasks:
                await task.stop(force=True)
    finally:
        for worker in workers:
            worker.leave()


async def runs(task: Task) -> bool:
    return (await task.refresh()).state is State.RUNNING


async def test_x2_who_has_written_waits_for_a_record_that_can_only_be_read(
    own_server: Server, home: Path
) -> None:
    """Also where each task was written at once, and a transaction changed nothing before."""
    address = own_server.create()
    own_server.run("CREATE ROLE fails SUPERUSER LOGIN")

    def only_reads(setting: str) -> None:
        own_server.run(f"ALTER ROLE fails SET default_transaction_read_only = {setting}")
        own_server.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'fails'"
        )

    async with Backburner.open(address.replace("//test@", "//fails@")) as bb:
        session = bb.session("chat")
        assert not await bb.store.note("bg_none", 1, EventKind.DETAIL, Facts(detail="x"))
        await session.run("true")
        only_reads("on")
        running = asyncio.create_task(session.run("true"))
        assert not (await asyncio.wait([running], timeout=1))[0]
        only_reads("off")
        await running
        assert len(await session.tasks()) == 2
