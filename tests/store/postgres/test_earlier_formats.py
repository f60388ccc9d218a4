"""X10: a record of every earlier format is brought up to date, and its work goes on.

The rows are those that a program of that format has written. SQLite has the same in
`tests/store/sqlite/test_migrations.py`.
"""

import asyncio
from dataclasses import replace

import pytest

from backburner.model.clock import SECOND
from backburner.model.order import Order
from backburner.model.schedule import ScheduleState
from backburner.model.signals import SignalState
from backburner.model.states import ErrorKind, State
from backburner.store.postgres import migrations as module
from backburner.store.postgres.checkup import Breaches, bring_up_to_date, checkup
from backburner.store.postgres.engine import TASK
from backburner.store.postgres.migrations import OLDEST, migrated, migrations
from tests.store.conformance.making import ADA, ENDINGS, PLACE, PLENTY, get, new_task
from tests.store.conformance.schedules import turn
from tests.store.postgres.conftest import Open
from tests.store.postgres.test_database import run
from tests.store.postgres.test_engine import jobs

pytestmark = [pytest.mark.slow]

NEWEST = max(migrations())

_TASK = """INSERT INTO task (id, owner, session, kind, title, spec, hand_over, created_at, events,
                             let_in, state"""

ROWS = {
    1: f"""
    {_TASK}, attempt, started_at, finished_at, error_kind, error_message, exit_code, boot_id,
          started_boot, pid, output_bytes, node)
    VALUES ('bg_old', 'ada', 'chat', 'shell', 'old tests', '{{"command":"pytest"}}', '0+4096', 1000,
            3, 2, 'failed', 2, 2000, 3000, 'exit', 'exit code 3', 3, 'boot', 5, 4711, 6, 'nd_1');
    {_TASK}, started_at, boot_id, started_boot, pid, node)
    VALUES ('bg_runs', 'ada', 'chat', 'shell', 'runs', '{{}}', '0+4096', 3500, 2, 1, 'running',
            3600, 'boot', 5, 4712, 'nd_1');
    {_TASK}) VALUES ('bg_waits', 'ada', 'chat', 'shell', 'waits', '{{}}', '0+4096', 4000, 1, 1,
                     'queued');
    SELECT procrastinate_defer_jobs_v1(ARRAY[
        ROW('default', '{TASK}', 0, NULL, 'bg_waits:1', '{{"task":"bg_waits","attempt":1}}', NULL)
    ]::procrastinate_job_to_defer_v1[]);
    INSERT INTO event (task, number, at, kind, data)
    SELECT seq, e.number, e.at, e.kind, e.data
    FROM (VALUES ('bg_old', 1, 1000, 'created', '{{}}'),
                 ('bg_old', 2, 2000, 'started', '{{"attempt":2}}'),
                 ('bg_old', 3, 3000, 'finished', '{{"exit_code":3}}'),
                 ('bg_runs', 1, 3500, 'created', '{{}}'), ('bg_runs', 2, 3600, 'started', '{{}}'),
                 ('bg_waits', 1, 4000, 'created', '{{}}')) AS e (id, number, at, kind, data)
    JOIN task ON task.id = e.id;
    INSERT INTO signal (key, task, owner, session, kind, text, data, state, channel, created_at)
    SELECT 'bg_old:end', seq, 'ada', 'chat', 'failed', 'old tests failed', '{{}}', 'pending',
           'inbox', 3000 FROM task WHERE id = 'bg_old';
    INSERT INTO mirror (task, attempt, stream, total)
    SELECT seq, 2, 'output', 6 FROM task WHERE id = 'bg_old';
    INSERT INTO mirror_piece (task, attempt, stream, at, data)
    SELECT seq, 2, 'output', 0, convert_to(E'wrong\\n', 'UTF8') FROM task WHERE id = 'bg_old';
    INSERT INTO schedule (id, owner, session, kind, title, spec, cron, zone, state, missed,
                          overlap, jitter_s, task_limit, hand_over, created_at, next_at, due_at,
                          last_at, fired)
    VALUES ('sc_old', 'ada', 'chat', 'shell', 'nightly', '{{}}', '* * * * *', 'UTC', 'active',
            'once', 'parallel', 0, 1000, '0+4096', 1000, 5000, 5000, 4000, 1);
    INSERT INTO firing (schedule, nominal_at, at, task)
    SELECT seq, 4000, 4000, 'bg_old' FROM schedule;
    """,
    2: f"""
    INSERT INTO owner_limit (owner, running) VALUES ('ada', 9);
    {_TASK}, after) VALUES ('bg_then', 'ada', 'chat', 'shell', 'then', '{{}}', '0+4096', 4000, 1, 0,
                            'queued', '["bg_runs"]');
    INSERT INTO event (task, number, at, kind, data)
    SELECT seq, 1, 4000, 'created', '{{}}' FROM task WHERE id = 'bg_then';
    """,
    3: """
    UPDATE task SET hand_over = 'secret:plain:hunter2' WHERE id = 'bg_waits';
    """,
}
"""By format: what a program of it has written that one before it could not."""

SOUND = Breaches(
    jobs_without_tasks=0,
    tasks_without_jobs=0,
    running_nowhere=0,
    events_missing=0,
    ends_not_told_once=0,
    missing=[],
    tasks=0,
)


@pytest.mark.parametrize("number", migrations())
async def test_x10_a_record_of_every_format_is_brought_up_and_its_work_goes_on(
    empty: str, open_at: Open, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    _make(monkeypatch, empty, number)
    done = await asyncio.to_thread(bring_up_to_date, empty)
    assert (done.before, done.after) == (number, NEWEST)
    assert done.applied == [name for each, name in migrations().items() if each > number]
    assert done.oldest == OLDEST
    store = await open_at(empty)

    old = await get(store, "bg_old")
    assert (old.title, old.spec, old.state) == ("old tests", {"command": "pytest"}, State.FAILED)
    assert (old.attempt, old.created_at, old.started_at, old.finished_at) == (2, 1000, 2000, 3000)
    assert old.error is not None
    assert (old.error.kind, old.exit_code, old.pid) == (ErrorKind.EXIT, 3, 4711)
    assert old.signal_state is SignalState.PENDING
    assert [event.number for event in await store.events("bg_old")] == [1, 2, 3]
    assert [signal.key for signal in await store.signals(ADA)] == ["bg_old:end"]
    (output,) = await store.outputs("bg_old", ADA)
    assert list(output.pieces) == [(0, b"wrong\n")]
    (schedule,) = await store.schedules(ADA)
    assert (schedule.state, schedule.next_at, schedule.fired) == (ScheduleState.ACTIVE, 5000, 1)
    assert [firing.task for firing in await store.firings("sc_old")] == ["bg_old"]

    # And what is old can be worked with.
    assert await store.claim("bg_waits", 1, PLACE) is not None
    assert await store.finish("bg_runs", 1, ENDINGS["succeeded"]) is not None
    assert len(await store.claim_signals(ADA, consumer="c", limit=9, lease_s=60)) == 2
    fired = await store.fire("sc_old", 5000, turn(5000, next_at=60 * SECOND))
    assert [firing.nominal_at for firing in fired or ()] == [5000]
    if number >= 2:
        assert "bg_then" in {job[0] for job in jobs(empty)}, "it waited for what has ended"
        assert [(limit.owner, limit.limit) for limit in await store.owner_limits()] == [("ada", 9)]
    if number >= 3:
        waits = await get(store, "bg_waits")
        assert waits.hand_over is not None
        assert await store.secret(waits.hand_over) == "plain:hunter2"
    new = await store.create(new_task(order=Order(after=("bg_waits",))), limit=PLENTY)
    assert new.seq > old.seq
    assert await store.finish("bg_waits", 1, ENDINGS["succeeded"]) is not None
    assert new.id in {job[0] for job in jobs(empty)}
    assert run(empty, "SELECT count(*) FROM secret") == [(0,)]
    with checkup(empty) as checked:
        found = checked.breaches()
    assert found == replace(SOUND, tasks=found.tasks)


def _make(patch: pytest.MonkeyPatch, address: str, number: int) -> None:
    """A record of that format, with what its programs have written."""
    known = {each: name for each, name in migrations().items() if each <= number}
    with patch.context() as then:
        then.setattr(module, "migrations", lambda: known)
        then.setattr(module, "OLDEST", min(OLDEST, number))
        migrated(address).close()
    for each, rows in ROWS.items():
        if each <= number:
            run(address, rows)
