"""X10: what a user of the database needs, and what is said to one that lacks it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from backburner.model.errors import StoreAway, StoreUnusable
from backburner.store.postgres import migrations
from backburner.store.postgres import store as store_module
from backburner.store.postgres.checkup import bring_up_to_date, checkup
from backburner.store.postgres.connection import TENANT, Connection, is_standby
from backburner.store.postgres.store import open_store
from tests import postgres_server
from tests.postgres_server import Server
from tests.store.conformance.making import ADA, BOB, queued
from tests.store.postgres.test_database import run
from tests.waiting import wait_until_async


async def test_x10_a_plain_user_of_the_database_needs_no_more_than_the_role() -> None:
    """Who may not make roles is told what an administrator has to do, and then it works."""
    server = postgres_server.server()
    server.create()  # there is such a role, then
    name = f"plain{int(datetime.now(UTC).timestamp() * 1e6)}"
    address = server.create_empty()
    database = address.rsplit("/", 1)[1]
    server.run(f"CREATE ROLE {name} LOGIN")
    server.run(f"ALTER DATABASE {database} OWNER TO {name}")
    theirs = address.replace("//test@", f"//{name}@")
    with pytest.raises(StoreUnusable, match=f"GRANT {TENANT} TO {name}"):
        await open_store(theirs)
    server.run(f'GRANT {TENANT} TO "{name}"')
    store = await open_store(theirs)
    try:
        task = await queued(store)
        assert await store.get(task.id, ADA) is not None
        assert await store.get(task.id, BOB) is None
    finally:
        await store.close()


async def test_x10_who_may_make_roles_makes_a_record_that_it_can_use(own_server: Server) -> None:
    """From PostgreSQL 16 on it is a member of what it makes, and may not act as it by itself."""
    address = own_server.create_empty()
    own_server.run("CREATE ROLE maker LOGIN CREATEROLE")
    own_server.run(f"ALTER DATABASE {address.rsplit('/', 1)[1]} OWNER TO maker")
    store = await open_store(address.replace("//test@", "//maker@"))
    try:
        task = await queued(store)
        assert await store.get(task.id, ADA) is not None
    finally:
        await store.close()


async def test_x10_whom_the_database_lets_in_once_is_told_so_and_does_not_wait_for_ever(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection that would hear of changes is one too many."""
    monkeypatch.setattr(store_module, "PATIENCE_S", 1.0)
    server, name = postgres_server.server(), f"once{int(datetime.now(UTC).timestamp() * 1e6)}"
    server.run(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 1")
    server.run(f"GRANT test TO {name}")
    with pytest.raises(StoreAway, match="would hear of changes"):
        await open_store(address.replace("//test@", f"//{name}@"))
    left = f"SELECT 1 FROM pg_stat_activity WHERE usename = '{name}'"
    await wait_until_async(lambda: run(address, left) == [])
    server.run(f"DROP ROLE {name}")


async def test_x2_a_database_that_goes_away_while_a_record_is_opened_is_told_of_as_ever(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for it tries again then, and does not end."""

    def cut(connection: Connection) -> bool:
        run(address, f"SELECT pg_terminate_backend({connection.info.backend_pid})")
        return is_standby(connection)

    monkeypatch.setattr(migrations, "is_standby", cut)
    with pytest.raises(StoreAway):
        await open_store(address)


NewUser = Callable[[str, str], tuple[str, str]]


@pytest.fixture
def new_user() -> Iterator[NewUser]:
    """Makes one, with these rights in a database: its name, and the address for it."""
    server = postgres_server.server()
    made: list[tuple[str, str]] = []

    def make(address: str, granted: str) -> tuple[str, str]:
        name = f"user{int(datetime.now(UTC).timestamp() * 1e6)}"
        server.run(f"CREATE ROLE {name} LOGIN")
        made.append((name, address))
        if granted:
            run(address, granted.format(name))
        return name, address.replace("//test@", f"//{name}@")

    yield make
    for name, address in made:
        run(address, f"DROP OWNED BY {name}")
        server.run(f"DROP ROLE {name}")


LOOKS = """
    GRANT USAGE ON SCHEMA backburner TO {0}; GRANT SELECT ON ALL TABLES IN SCHEMA backburner TO {0}
"""


async def test_x10_whom_policies_hide_the_record_from_is_told_so_and_sees_no_empty_one(
    address: str, new_user: NewUser
) -> None:
    store = await open_store(address)
    await queued(store)
    await store.close()
    _, theirs = new_user(address, LOOKS)
    with pytest.raises(StoreUnusable, match=r"does not see the record.*GRANT"):
        await open_store(theirs)
    with pytest.raises(StoreUnusable, match="does not see the record"), checkup(theirs):
        pass
    _, as_its_owner = new_user(address, "GRANT test TO {0}")
    await (await open_store(as_its_owner)).close()


def test_x10_who_may_not_make_a_schema_is_told_of_that_right_and_no_other(
    empty: str, new_user: NewUser
) -> None:
    postgres_server.server().create()  # there is the role, then
    name, theirs = new_user(empty, "")
    database = empty.rpartition("/")[2]
    grants = [f"GRANT CREATE ON DATABASE {database} TO {name}", f"GRANT {TENANT} TO {name}"]
    with pytest.raises(StoreUnusable) as refused:
        bring_up_to_date(theirs)
    assert refused.value.remedy.endswith(f": {'; '.join(grants)}")
    run(empty, grants[1])
    with pytest.raises(StoreUnusable) as refused:
        bring_up_to_date(theirs)
    assert refused.value.remedy.endswith(f": {grants[0]}")
    run(empty, grants[0])
    assert bring_up_to_date(theirs).applied


def test_x10_a_schema_that_an_administrator_has_made_is_enough(
    empty: str, new_user: NewUser
) -> None:
    postgres_server.server().create()
    _, theirs = new_user(
        empty,
        f"GRANT {TENANT} TO {{0}}; CREATE SCHEMA backburner;"
        " ALTER SCHEMA backburner OWNER TO {0}",
    )
    assert bring_up_to_date(theirs).applied
