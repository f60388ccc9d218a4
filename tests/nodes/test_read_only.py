"""X2, X10: a record that cannot be written, for a while or for good: who needs it says why."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from backburner import Backburner, Settings
from backburner.model.events import EventKind
from backburner.model.states import State
from backburner.store.protocol import Facts
from tests import postgres_server
from tests.cli.program import Program
from tests.nodes.workers import WorkerProcess
from tests.nursery import Nursery
from tests.pgbouncer import pgbouncer
from tests.postgres_server import Server
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]


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


@pytest.mark.parametrize("over_a_pooler", [False, True])
async def test_x2_nothing_is_read_from_a_server_that_only_follows_another_one(
    own_server: Server, home: Path, tmp_path: Path, over_a_pooler: bool
) -> None:
    """What was just written may not be there, and its heartbeats are old: everybody seems dead."""
    address = own_server.create()
    with pgbouncer(address, "transaction", tmp_path) as pooled:
        settings = Settings(pooler=pooled if over_a_pooler else "")
        async with Backburner.open(address, settings=settings) as bb:
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
