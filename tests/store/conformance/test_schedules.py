"""E9: schedules in the record: what each change of them promises."""

import pytest

from backburner.model import clock
from backburner.model.errors import Conflict, LimitReached
from backburner.model.schedule import FIRINGS_KEPT, ScheduleState, Turn
from backburner.store.protocol import Scope, Store
from tests.store.conformance.making import ADA, EVERY_SESSION_OF_ADA, STRANGERS
from tests.store.conformance.schedules import FIRST, PLENTY, add, get, new_schedule, turn


async def test_e9_a_schedule_comes_back_as_it_was_written(store: Store) -> None:
    added = await add(store, title="ümlaut", jitter_s=1.5, max_runtime_s=9.0, hand_over="0+1")
    assert added == await get(store)
    assert (added.state, added.next_at, added.due_at) == (ScheduleState.ACTIVE, FIRST, FIRST)
    assert (added.title, added.jitter_s, added.max_runtime_s) == ("ümlaut", 1.5, 9.0)
    assert (added.fired, added.last_task, added.ended_at) == (0, None, None)
    assert await store.schedule("sc_2") is None


async def test_e12_the_same_id_gives_the_same_schedule_or_a_conflict(store: Store) -> None:
    added = await add(store)
    assert await store.add_schedule(new_schedule(), limit=PLENTY) == (added, False)
    for changed in (
        new_schedule(cron="1 * * * *"),
        new_schedule(zone="Europe/Berlin"),
        new_schedule(spec={"command": "false"}),
        new_schedule(scope=Scope("ada", "work")),
        new_schedule(scope=Scope("bob", "chat")),
    ):
        with pytest.raises(Conflict) as refused:
            await store.add_schedule(changed, limit=PLENTY)
        assert "nightly" not in str(refused.value)


async def test_e9_active_and_paused_ones_count_towards_the_limit(store: Store) -> None:
    for number in range(5):
        await store.add_schedule(new_schedule(f"sc_{number}"), limit=5)
    await store.pause_schedule("sc_0", ADA)
    with pytest.raises(LimitReached, match="5 is the limit"):
        await store.add_schedule(new_schedule("sc_5"), limit=5)
    assert await store.schedule("sc_5") is None
    await store.add_schedule(new_schedule("sc_other", Scope("ada", "work")), limit=5)
    await store.cancel_schedule("sc_1", ADA)
    await store.add_schedule(new_schedule("sc_5"), limit=5)
    same, fresh = await store.add_schedule(new_schedule("sc_5"), limit=5)
    assert (same.id, fresh) == ("sc_5", False)


async def test_e9_pause_resume_and_cancel_are_guarded(store: Store) -> None:
    await add(store)
    assert await store.resume_schedule("sc_1", ADA, next_at=2_000, due_at=2_000) is None
    paused = await store.pause_schedule("sc_1", ADA, "no such zone")
    assert paused is not None
    assert (paused.state, paused.next_at, paused.detail) == (
        ScheduleState.PAUSED,
        None,
        "no such zone",
    )
    assert await store.pause_schedule("sc_1", ADA) is None
    resumed = await store.resume_schedule("sc_1", ADA, next_at=2_000, due_at=2_500)
    assert resumed is not None
    assert (resumed.next_at, resumed.due_at, resumed.detail) == (2_000, 2_500, None)
    canceled = await store.cancel_schedule("sc_1", ADA)
    assert canceled is not None
    assert canceled.state is ScheduleState.CANCELED
    for change in (store.pause_schedule, store.cancel_schedule):
        assert await change("sc_1", ADA) is None
    assert await store.resume_schedule("sc_1", ADA, next_at=9_000, due_at=9_000) is None


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_e9_nobody_else_sees_or_changes_a_schedule(store: Store, stranger: Scope) -> None:
    added = await add(store)
    assert await store.schedule("sc_1", stranger) is None
    assert await store.find_schedules("sc_", stranger, 10) == []
    assert await store.schedules(stranger) == []
    assert await store.pause_schedule("sc_1", stranger) is None
    assert await store.cancel_schedule("sc_1", stranger) is None
    await store.pause_schedule("sc_1", ADA)
    assert await store.resume_schedule("sc_1", stranger, next_at=1, due_at=1) is None
    assert (await get(store)).created_at == added.created_at


async def test_e9_schedules_are_found_by_session_state_and_prefix(store: Store) -> None:
    await add(store, "sc_a1")
    await add(store, "sc_a2")
    await add(store, "sc_b1", Scope("ada", "work"))
    await store.pause_schedule("sc_a2", ADA)
    assert [each.id for each in await store.schedules(ADA)] == ["sc_a1", "sc_a2"]
    assert len(await store.schedules(EVERY_SESSION_OF_ADA)) == 3
    paused = await store.schedules(ADA, states=[ScheduleState.PAUSED])
    assert [each.id for each in paused] == ["sc_a2"]
    assert {each.id for each in await store.find_schedules("sc_a", ADA, 10)} == {"sc_a1", "sc_a2"}
    assert [each.id for each in await store.find_schedules("sc_a2", ADA, 10)] == ["sc_a2"]


async def test_e9_due_ones_come_in_the_order_of_their_times(store: Store) -> None:
    assert await store.next_firing() is None
    await add(store, "sc_late", next_at=5_000, due_at=5_500)
    await add(store, "sc_early", Scope("bob", "chat"), next_at=3_000, due_at=3_000)
    assert await store.next_firing() == 3_000
    assert await store.due_schedules(2_999, 10) == []
    assert [each.id for each in await store.due_schedules(5_499, 10)] == ["sc_early"]
    assert [each.id for each in await store.due_schedules(5_500, 10)] == ["sc_early", "sc_late"]


async def test_e9_an_active_schedule_needs_a_keeper_and_a_paused_one_does_not(
    store: Store,
) -> None:
    assert not await store.any_active()
    await add(store)
    assert await store.any_active()
    await store.pause_schedule("sc_1", ADA)
    assert not await store.any_active()


async def test_e9_the_history_is_bounded(store: Store) -> None:
    await add(store)
    many = FIRINGS_KEPT + 5
    for nominal in range(1_000, 1_000 + many):
        passed = Turn(next_at=nominal + 1, due_at=nominal + 1, passed_over="missed")
        await store.fire("sc_1", nominal, passed)
    history = await store.firings("sc_1", limit=10_000)
    assert len(history) == FIRINGS_KEPT
    assert history[0].nominal_at == 1_000 + many - 1


async def test_e12_ended_schedules_are_forgotten_and_their_tasks_stay(store: Store) -> None:
    await add(store)
    await add(store, "sc_2")
    await store.fire("sc_1", FIRST, turn(FIRST, next_at=None))
    assert await store.forget_schedules(store.now() - 60 * clock.SECOND) == 0
    assert await store.forget_schedules(store.now() + 1) == 1
    assert [each.id for each in await store.schedules(ADA)] == ["sc_2"]
    assert await store.firings("sc_1") == []
    task = await store.get("bg_sc_1_1000")
    assert task is not None
    assert task.schedule == "sc_1"
