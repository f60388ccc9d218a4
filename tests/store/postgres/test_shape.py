"""X10: `db check` misses what a restore has left out, and rights are granted again."""

import os
from pathlib import Path

import psycopg
import pytest

from backburner.model.errors import StoreUnusable
from backburner.store.postgres import queries
from backburner.store.postgres.checkup import bring_up_to_date, checkup
from backburner.store.postgres.connection import TENANT
from backburner.store.postgres.store import open_store
from tests.store.conformance.making import queued
from tests.store.postgres.test_database import run

SHAPE = Path(queries.SQL_FOLDER, "shape.txt")


def test_x10_what_the_migrations_make_is_written_down(address: str) -> None:
    """`UPDATE_GOLDEN=1` writes it anew."""
    with psycopg.connect(address) as connection:
        connection.execute("SET search_path TO backburner")
        found = connection.execute(queries.query("check_shape").text).fetchall()
    lines = "".join(f"{name}\n" for name in sorted(name for (name,) in found))
    if os.environ.get("UPDATE_GOLDEN"):
        SHAPE.write_text(lines, encoding="utf-8")
    assert lines == SHAPE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        ("DROP INDEX task_queued", "index task_queued"),
        ("ALTER TABLE task DROP CONSTRAINT task_state_check", "constraint task.task_state_check"),
        ("ALTER TABLE task DISABLE ROW LEVEL SECURITY", "row security task"),
        ("DROP POLICY of_owner ON signal", "policy signal.of_owner"),
        ("ALTER TABLE task DISABLE TRIGGER keep_launch", "trigger task.keep_launch"),
        (f"REVOKE INSERT ON event FROM {TENANT}", "right INSERT event"),
    ],
)
def test_x10_what_is_gone_is_missed(address: str, change: str, lacks: str) -> None:
    run(address, change)
    with checkup(address) as look:
        assert look.breaches().missing == [lacks]


async def test_x10_after_a_restore_without_rights_they_are_granted_again(address: str) -> None:
    """And until then nobody is told of a record that is well."""
    run(address, f"REVOKE ALL ON ALL TABLES IN SCHEMA backburner FROM {TENANT}")
    run(address, f"REVOKE ALL ON SCHEMA backburner FROM {TENANT}")
    with pytest.raises(StoreUnusable, match="no right to the record") as refused:
        await open_store(address)
    assert refused.value.remedy == "backburner db migrate grants it again"
    with checkup(address) as look:
        missing = look.breaches().missing
    assert "right USAGE" in missing
    assert all(name.startswith("right ") for name in missing)
    assert bring_up_to_date(address).granted == missing
    assert bring_up_to_date(address).granted == []
    store = await open_store(address)
    try:
        await queued(store)
    finally:
        await store.close()
