"""A record of the first format is brought up to date with what lies in it."""

import json

import pytest

from backburner.store.postgres import migrations as module
from backburner.store.postgres.connection import connect
from backburner.store.postgres.migrations import migrate, migrations
from backburner.work.handover import opened
from tests.store.conformance.making import ADA, ENDINGS, PLACE, PLENTY, get, new_task
from tests.store.postgres.conftest import Open
from tests.store.postgres.test_database import run

LAUNCH = {
    "left_at": 1.0, "argv": ["true"], "cwd": "/", "environment": {"API_TOKEN": "hunter2"},
    "umask": 18, "open_files": 64,
}  # fmt: skip

GIVEN = json.dumps(LAUNCH)
ROWS = f"""
    INSERT INTO task (id, owner, session, kind, title, spec, state, created_at, hand_over, after)
    VALUES ('bg_first', 'ada', 'chat', 'shell', 't', '{{}}', 'queued', 1, '{GIVEN}', NULL),
           ('bg_then', 'ada', 'chat', 'shell', 't', '{{}}', 'queued', 2, 'x', '["bg_first"]');
    INSERT INTO task (id, owner, session, kind, title, spec, state, created_at, finished_at,
                      hand_over)
    VALUES ('bg_ended', 'ada', 'chat', 'shell', 't', '{{}}', 'succeeded', 1, 2, '{GIVEN}');
    INSERT INTO schedule (id, owner, session, kind, title, spec, cron, zone, state, missed, overlap,
                          jitter_s, task_limit, hand_over, created_at, next_at, due_at)
    VALUES ('sc_old', 'ada', 'chat', 'shell', 't', '{{}}', '* * * * *', 'UTC', 'active', 'once',
            'skip', 0, 5, '{GIVEN}', 1, 9, 9);
"""


@pytest.mark.slow
async def test_e12_what_an_older_program_has_left_can_be_started(
    empty: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {1: migrations()[1]}
    with monkeypatch.context() as patch, connect(empty) as connection:
        patch.setattr(module, "migrations", lambda: first)
        patch.setattr(module, "OLDEST", 1)
        migrate(connection)
    run(empty, ROWS)
    store = await open_at(empty)
    task = await get(store, "bg_first")
    kept = await store.secret(task.hand_over or "")
    assert kept is not None
    assert opened(kept, task.id).environment["API_TOKEN"] == "hunter2"
    schedule = await store.schedule("sc_old", ADA)
    assert schedule is not None
    assert await store.secret(schedule.hand_over or "") == kept
    assert "hunter2" not in repr(run(empty, "SELECT * FROM task"))
    assert (task.priority, schedule.priority) == (0, 0)
    # And what waited for another still does, for that one.
    await store.create(new_task(), limit=PLENTY)
    jobs = "SELECT args ->> 'task' FROM procrastinate_jobs WHERE args ->> 'task' = 'bg_then'"
    assert run(empty, jobs) == []
    await store.claim("bg_first", 1, PLACE)
    await store.finish("bg_first", 1, ENDINGS["succeeded"])
    assert run(empty, jobs) == [("bg_then",)]
