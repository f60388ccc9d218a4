"""D9: what a start is given lies apart from its row, and no longer than it is needed."""

from dataclasses import replace

import pytest

from backburner.model import clock
from backburner.model.channels import Channel, ChannelKind
from backburner.model.errors import Conflict
from backburner.model.order import Order
from backburner.model.schedule import NewSchedule
from backburner.model.states import Kind
from backburner.model.worker import Worker
from backburner.store.postgres.store import PostgresStore
from tests.store.conformance.making import ADA, ENDINGS, PLACE, PLENTY, get, new_task
from tests.store.postgres.test_database import run

GIVEN = "secret:plain:hunter2"


def kept(address: str) -> list[str]:
    return [str(content) for (content,) in run(address, "SELECT content FROM secret ORDER BY name")]


def everywhere(address: str) -> str:
    """All that lies in the record, but for the one place that it belongs in."""
    tables = run(
        address,
        "SELECT tablename FROM pg_tables WHERE schemaname = 'backburner' AND tablename <> 'secret'",
    )
    return "".join(repr(run(address, f"SELECT * FROM {table}")) for (table,) in tables)


async def test_d9_it_lies_apart_until_the_task_has_ended(
    store: PostgresStore, address: str
) -> None:
    new = replace(new_task(order=Order(retries=1)), hand_over=GIVEN)
    task = await store.create(new, limit=PLENTY)
    assert task.hand_over is not None
    assert "hunter2" not in task.hand_over
    assert await store.secret(task.hand_over) == "plain:hunter2"
    assert kept(address) == ["plain:hunter2"]
    assert await store.create(new, limit=PLENTY) == task
    with pytest.raises(Conflict):
        await store.create(replace(new, spec={"another": "one"}), limit=PLENTY)
    assert len(kept(address)) == 1, "the same start twice leaves nothing more"
    await store.claim(task.id, 1, PLACE)
    await store.fail_try(task.id, 1, ENDINGS["exit"], store.now())
    assert len(kept(address)) == 1, "a further attempt needs it"
    assert "hunter2" not in everywhere(address)
    await store.claim(task.id, 2, PLACE)
    await store.finish(task.id, 2, ENDINGS["exit"])
    assert kept(address) == []
    assert "hunter2" not in everywhere(address)


@pytest.mark.parametrize("how", ["stopped", "at once", "used"])
async def test_d9_it_goes_however_the_task_goes(
    store: PostgresStore, address: str, how: str
) -> None:
    new = replace(new_task(), hand_over=GIVEN)
    if how == "at once":
        await store.create(new, limit=PLENTY, ending=ENDINGS["spawn"])
    else:
        task = await store.create(new, limit=PLENTY)
        if how == "stopped":
            await store.request_stop(task.id, ADA, 0)
        else:
            assert await store.forget_secrets([task.hand_over or ""]) == 1
            assert (await get(store, task.id)).hand_over == task.hand_over
    assert kept(address) == []


async def test_d9_what_another_attempt_brings_takes_its_place(
    store: PostgresStore, address: str
) -> None:
    task = await store.create(replace(new_task(), hand_over=GIVEN), limit=PLENTY)
    await store.claim(task.id, 1, PLACE)
    await store.requeue(task.id, 1, "its worker died", hand_over="secret:plain:other")
    assert kept(address) == ["plain:other"]


async def test_d9_schedules_workers_and_channels_keep_theirs_as_long_as_they_are(
    store: PostgresStore, address: str
) -> None:
    later = clock.now() + 3600 * clock.SECOND
    schedule = NewSchedule(
        "sc_1", "ada", "chat", Kind.SHELL, "t", {}, "UTC", later, later, cron="* * * * *",
        hand_over=GIVEN,
    )  # fmt: skip
    await store.add_schedule(schedule, limit=9)
    await store.add_schedule(schedule, limit=9)
    await store.register_worker(Worker("w_1", "boot", 1, GIVEN))
    await store.register_worker(Worker("w_1", "boot", 1, GIVEN))
    channel = Channel(
        "hook", "ada", None, ChannelKind.WEBHOOK, "https://example.com", secret="secret:plain:key"
    )
    await store.add_channel(channel)
    with pytest.raises(Conflict):
        await store.add_channel(channel)
    assert sorted(kept(address)) == ["plain:hunter2", "plain:hunter2", "plain:key"]
    (named,) = await store.channels()
    assert await store.secret(named.secret or "") == "plain:key"
    assert "hunter2" not in everywhere(address)
    await store.cancel_schedule("sc_1", ADA)
    await store.remove_worker("w_1")
    assert kept(address) == ["plain:key"]
    await store.remove_channel("hook", "ada")
    assert kept(address) == []
