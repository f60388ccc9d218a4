"""The clockwork of a home: fires what is due, and sleeps until the next firing.

Runs in the keeper. A firing is one transaction that is guarded by the firing it expects: whoever
fires, and however often they are killed, each happens once. What its task is started with is copied
before, and lies unused where the transaction did not come: then it goes as all such pieces go.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.ending import Ending
from backburner.model.errors import UsageError
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.order import Order
from backburner.model.schedule import Schedule, Start, Turn
from backburner.model.states import ErrorKind
from backburner.model.task import NewTask
from backburner.runtime.launches import left_for
from backburner.runtime.schedules.calendar import Calendar, task_id
from backburner.runtime.schedules.plan import plan
from backburner.runtime.schedules.work import waits_for
from backburner.runtime.unstarted import leave_result
from backburner.store.news import Subject, about
from backburner.store.protocol import Scope, Store
from backburner.work import handover

_REST_S = 0.05
"""Changes come in crowds: one look for all of a moment. It puts off nothing that is due."""

_AT_ONCE = 100
_ALL = 100_000
_NO_TIME_IS_LATER = 2**62
_AGAIN_S = 5.0
_LONGEST_NAP_S = 10.0
"""The clock may be set, and timers stand still while the machine sleeps."""
_FORGET_EVERY_S = 3600.0
_LOOK_OVER_EVERY_S = 60.0
_AMISS = 60 * clock.SECOND
"""What a schedule has dealt with up to a later time than this from now, it has not: two machines
reckon the database's time not nearly so differently."""


class Clockwork:
    """Fires the schedules of one home."""

    def __init__(
        self, store: Store, home: Home, settings: Settings, report: Callable[[str], None]
    ) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._report = report
        self._bell = asyncio.Event()
        self._unsubscribe = store.on_change(self._bell.set, about(Subject.SCHEDULES))
        self._under_way: asyncio.Future[None] | None = None
        self._forgotten: float | None = None
        self._ahead: int | None = None
        """By how much the time of day was ahead of the time since boot, at the last look."""
        self._looked_over = 0.0
        """When it was last looked at what waits for which time."""

    async def run(self) -> None:
        """Fire, until cancelled."""
        while True:
            try:
                await self._look()
            except Exception as error:  # noqa: BLE001 - look again, whatever it was
                self._report(f"schedules: will look again: {type(error).__name__}: {error}")
                await asyncio.sleep(_AGAIN_S)

    async def close(self) -> None:
        """Let go, after the firing that is under way."""
        self._unsubscribe()
        if self._under_way is not None:
            await asyncio.gather(self._under_way, return_exceptions=True)

    async def _look(self) -> None:
        """Fire what is due, then wait for the next reason to look."""
        self._bell.clear()
        await self._expect_anew()
        troubled = False
        for schedule in await self._store.due_schedules(self._store.now(), _AT_ONCE):
            try:
                # Whoever is told to leave meanwhile leaves nothing half done.
                self._under_way = asyncio.ensure_future(self._fire(schedule))
                await asyncio.shield(self._under_way)
            except UsageError as error:  # its time zone is gone, say: nothing helps but a person
                self._report(f"{schedule.id} is paused: {error}")
                scope = Scope(schedule.owner, schedule.session)
                await self._store.pause_schedule(schedule.id, scope, str(error))
            except Exception as error:  # noqa: BLE001 - the others have their time too
                self._report(f"{schedule.id}: {type(error).__name__}: {error}")
                troubled = True
        await self._forget_now_and_then()
        if troubled:
            await asyncio.sleep(_AGAIN_S)
            return
        due = await self._store.next_firing()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else self._nap_s(due)):
                await self._bell.wait()
                await asyncio.sleep(_REST_S)

    async def _expect_anew(self) -> None:
        """Bring forward what waits for a time that a wrong clock has made the next.

        While it was a year ahead, what was due went on to next year. Only after it was set back,
        and at the beginning, since nobody may have been there when it was. In a shared record now
        and then besides: a program of an earlier release goes by the clock of its machine.
        """
        now, at = self._store.now(), asyncio.get_running_loop().time()
        before, self._ahead = self._ahead, now - clock.boot_now()
        was_set_back = before is None or before - self._ahead >= clock.SECOND
        was_long_ago = self._home.shared and at - self._looked_over > _LOOK_OVER_EVERY_S
        if not was_set_back and not was_long_ago:
            return
        self._looked_over = at
        for schedule in await self._store.due_schedules(_NO_TIME_IS_LATER, _ALL):
            if schedule.cron is None or schedule.next_at is None:
                continue
            with contextlib.suppress(UsageError):  # dealt with when it is due
                await self._bring_forward(schedule, schedule.next_at, now)

    async def _bring_forward(self, schedule: Schedule, expected: Instant, now: Instant) -> None:
        last = schedule.last_at or 0
        # In a home the clock is the one that was ahead: what fired then does not fire once more.
        anew = self._home.shared and last > now + _AMISS
        calendar = Calendar.of(schedule)
        nominal = calendar.following(now if anew else max(now, last))
        if nominal is not None and nominal < expected:
            due = calendar.due(nominal)
            await self._store.bring_forward(
                schedule.id, expected, next_at=nominal, due_at=due, anew=anew
            )

    async def _fire(self, schedule: Schedule) -> None:
        assert schedule.next_at is not None
        calendar = Calendar.of(schedule)
        planned = plan(schedule, calendar, self._store.now())
        starts = tuple([await self._start(schedule, nominal) for nominal in planned.nominal])
        turn = Turn(
            starts,
            planned.next_at,
            None if planned.next_at is None else calendar.due(planned.next_at),
            planned.made_up,
            planned.passed_over,
        )
        fired = await self._store.fire(schedule.id, schedule.next_at, turn)
        began = {firing.task for firing in fired or ()}
        for start in starts:
            if start.task.id not in began:
                handover.discard(self._home, start.task.id, start.task.hand_over)
            elif start.ending is not None and (task := await self._store.get(start.task.id)):
                leave_result(self._home, task)
        if fired is not None and planned.next_at is None:
            handover.discard(self._home, schedule.id, schedule.hand_over)

    async def _start(self, schedule: Schedule, nominal: Instant) -> Start:
        new = NewTask(
            id=task_id(schedule.id, nominal),
            owner=schedule.owner,
            session=schedule.session,
            kind=schedule.kind,
            title=schedule.title,
            spec=schedule.spec,
            max_runtime_s=schedule.max_runtime_s,
            schedule=schedule.id,
            order=Order(priority=schedule.priority),
        )
        if schedule.hand_over is None:
            detail = waits_for(schedule.kind, schedule.spec, shared=self._home.shared)
            return Start(nominal, new, detail=detail)
        try:
            launch = await left_for(self._store, self._home, schedule.id, schedule.hand_over)
        except (FileNotFoundError, ValueError, TypeError):
            reason = "what it was to be started with is gone: make the schedule anew"
            return Start(nominal, new, ending=Ending.failed(ErrorKind.SPAWN, reason))
        name = handover.leave(self._home, new.id, launch)
        return Start(nominal, replace(new, hand_over=name))

    async def _forget_now_and_then(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._forgotten is None or now - self._forgotten > _FORGET_EVERY_S:
            kept = round(self._settings.retention_s * clock.SECOND)
            self._forgotten = now
            await self._store.forget_schedules(self._store.now() - kept)

    def _nap_s(self, due: Instant) -> float:
        return min(max(0.0, (due - self._store.now()) / clock.SECOND), _LONGEST_NAP_S)
