"""Schedules as callers see them: made, found, paused, resumed, canceled."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar, cast

from backburner.model import clock, ids
from backburner.model.clock import Instant
from backburner.model.errors import Ambiguous, BackburnerError, Conflict, NotFound, UsageError
from backburner.model.home import Home
from backburner.model.limits import LONGEST_RUNTIME_S, TITLE_MAX_CHARS, Settings
from backburner.model.order import check_priority
from backburner.model.schedule import (
    LONGEST_JITTER_S,
    Missed,
    NewSchedule,
    Overlap,
    Schedule,
    ScheduleState,
)
from backburner.model.task import check_start, check_title, preview
from backburner.model.values import value
from backburner.runtime.schedules.calendar import Calendar
from backburner.runtime.schedules.work import Work
from backburner.runtime.scribe import whole
from backburner.runtime.tasks import TaskService, per_session
from backburner.store.protocol import Scope, Store
from backburner.work import handover

_PREFIX = "sc_"
_CANDIDATES = 10
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@value
class ScheduleOptions:
    """What a caller may say about a schedule beside its times and its work."""

    zone: str = "UTC"
    title: str | None = None
    missed: str = Missed.ONCE
    overlap: str = Overlap.SKIP
    jitter_s: float = 0.0
    max_runtime_s: float | None = None
    signal_on_completion: bool = True
    id: str | None = None
    priority: int = 0


class ScheduleService:
    """What can be done with the schedules of a home, within the scope of a caller."""

    def __init__(self, store: Store, home: Home, settings: Settings, tasks: TaskService) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._tasks = tasks

    async def add(
        self, scope: Scope, when: str | datetime, work: Work, options: ScheduleOptions
    ) -> tuple[Schedule, bool]:
        """Write a schedule, and see to it that a keeper fires it. Answers whether it is new."""
        new = self.checked(scope, when, work, options)
        limit = self._settings.schedules_per_session
        if await self._store.schedule(new.id) is not None:
            return await self._store.add_schedule(new, limit=limit)  # the same one, or a Conflict
        new = beginning(new, self._store.now())
        if work.launch is not None:
            new = replace(new, hand_over=self._tasks.hand_over(new.id, work.launch))
        return await whole(self._write(new, limit))

    async def _write(self, new: NewSchedule, limit: int) -> tuple[Schedule, bool]:
        try:
            added, fresh = await self._store.add_schedule(new, limit=limit)
        except BackburnerError:
            handover.discard(self._home, new.id, new.hand_over)
            raise
        if not fresh:  # the same id was written a moment before
            handover.discard(self._home, new.id, new.hand_over)
        await self._tasks.see_to_keeper()
        return added, fresh

    def checked(
        self, scope: Scope, when: str | datetime, work: Work, options: ScheduleOptions
    ) -> NewSchedule:
        """What would be written, but for its next time. UsageError."""
        if scope.session is None:
            raise UsageError("a schedule needs a session")
        check_title(options.title)
        check_start(options.id, options.max_runtime_s)
        check_priority(options.priority)
        jitter = cast("object", options.jitter_s)  # a NaN and texts come here too
        if not isinstance(jitter, int | float) or not 0 <= jitter <= LONGEST_JITTER_S:
            raise UsageError("the jitter must be 0 to 86400 seconds")
        cron, at = read_when(when)
        if at is not None and at - self._store.now() > LONGEST_RUNTIME_S * clock.SECOND:
            raise UsageError("that time is more than 100 years away")
        new = NewSchedule(
            id=options.id or _PREFIX + ids.new_id().removeprefix(ids.PREFIX),
            owner=scope.owner,
            session=scope.session,
            kind=work.kind,
            title=preview(options.title or work.shown, TITLE_MAX_CHARS if options.title else 60),
            spec=handover.for_record(self._home, work.spec)
            | ({} if options.signal_on_completion else {"wake": "silent"}),
            zone=options.zone,
            next_at=0,
            due_at=0,
            cron=cron,
            at=at,
            missed=_policy(Missed, options.missed, "missed"),
            overlap=_policy(Overlap, options.overlap, "overlap"),
            jitter_s=float(options.jitter_s),
            max_runtime_s=options.max_runtime_s,
            task_limit=per_session(work.kind, self._settings),
            priority=options.priority,
        )
        Calendar.of(new).check()
        return new

    # Finding

    async def find(self, reference: str, scope: Scope) -> Schedule:
        """A schedule by its id, or by enough of it."""
        found = await self._store.schedule(reference, scope)
        if found is not None:
            return found
        several: list[Schedule] = []
        if ids.is_valid(reference):
            several = await self._store.find_schedules(reference, scope, _CANDIDATES)
        if not several:
            raise NotFound(
                f"no schedule {preview(reference)!r} in session {scope.session!r}",
                remedy="backburner schedule ls --all-sessions lists every schedule",
            )
        if len(several) > 1:
            raise Ambiguous(reference, [each.id for each in several], "schedules")
        return several[0]

    # Changing

    async def pause(self, schedule_id: str, scope: Scope) -> Schedule:
        """Fire no more of it until it is resumed; what would have fired meanwhile is not missed."""
        paused = await self._store.pause_schedule(schedule_id, scope)
        return paused or await self._as_it_is(schedule_id, scope, ScheduleState.PAUSED)

    async def resume(self, schedule_id: str, scope: Scope) -> Schedule:
        """Go on with what comes. Conflict for a single time that has passed."""
        found = await self.find(schedule_id, scope)
        calendar = Calendar.of(found)
        calendar.check()
        # A clock that was set back must not bring a firing a second time.
        nominal = calendar.following(max(self._store.now(), found.last_at or 0))
        if nominal is None and found.state is ScheduleState.PAUSED:
            raise Conflict(
                f"the time of {found.id} has passed while it was paused",
                remedy="cancel it, and make a new one",
            )
        resumed = None
        if nominal is not None:
            resumed = await self._store.resume_schedule(
                found.id, scope, next_at=nominal, due_at=calendar.due(nominal)
            )
        await self._tasks.see_to_keeper()
        return resumed or await self._as_it_is(found.id, scope, ScheduleState.ACTIVE)

    async def cancel(self, schedule_id: str, scope: Scope) -> Schedule:
        """End it. The tasks that it has started go on."""

        async def cancel() -> Schedule | None:
            canceled = await self._store.cancel_schedule(schedule_id, scope)
            if canceled is not None:
                handover.discard(self._home, canceled.id, canceled.hand_over)
            return canceled

        canceled = await whole(cancel())
        return canceled or await self._as_it_is(schedule_id, scope, ScheduleState.CANCELED)

    async def _as_it_is(self, schedule_id: str, scope: Scope, wanted: ScheduleState) -> Schedule:
        """What was wanted is so already; Conflict where it cannot be any more."""
        found = await self.find(schedule_id, scope)
        if found.state is wanted:
            return found
        raise Conflict(
            f"{found.id} is {found.state}, and cannot be {wanted} any more",
            remedy="make a new schedule",
        )


def beginning(new: NewSchedule, now: Instant) -> NewSchedule:
    """With its first firing from now on. UsageError where there is none."""
    calendar = Calendar.of(new)
    nominal = calendar.following(now)
    if nominal is None:
        raise UsageError(
            f"{new.cron!r} never comes" if new.cron else "that time has passed",
            remedy="choose a time that comes",
        )
    return replace(new, next_at=nominal, due_at=calendar.due(nominal))


def next_times(when: str | datetime, zone: str, count: int, now: Instant) -> list[Instant]:
    """The nominal times that such a schedule would have from now on, ``count`` at the most."""
    cron, at = read_when(when)
    calendar = Calendar(cron, at, zone, "")
    calendar.check()
    times: list[Instant] = []
    nominal = calendar.following(now)
    while nominal is not None and len(times) < count:
        times.append(nominal)
        nominal = calendar.following(nominal)
    return times


def read_when(when: str | datetime) -> tuple[str | None, Instant | None]:
    """A cron expression, or a single time."""
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise UsageError(
                "the time has no time zone", remedy="give it one: datetime(…, tzinfo=UTC)"
            )
        return None, (when - _EPOCH) // timedelta(microseconds=1)
    if not isinstance(when, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("when is a cron expression, an RFC 3339 time or a datetime")
    text = " ".join(when.split())
    if not text[:4].isdigit() or "-" not in text[4:5]:
        return text, None
    try:
        return None, clock.from_rfc3339(text)
    except (ValueError, OverflowError) as error:
        message, _, remedy = str(error).partition("; ")
        if not remedy:
            message = f"{text[:60]!r} is no time"
        raise UsageError(message, remedy=remedy or "write 2030-12-24T18:00:00+01:00") from None


_Policy = TypeVar("_Policy", Missed, Overlap)


def _policy(kind: type[_Policy], given: str, name: str) -> _Policy:
    try:
        return kind(given)
    except ValueError:
        known = ", ".join(kind)
        raise UsageError(f"{name} cannot be {given!r}", remedy=f"use one of: {known}") from None
