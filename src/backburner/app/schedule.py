"""The handle on one schedule."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backburner.app.acting import acts
from backburner.model import clock, ids
from backburner.model.policy import DRY_RUN, FREE, Action, Policy
from backburner.model.schedule import Firing, ScheduleState, schedule_document
from backburner.model.schedule import Schedule as ScheduleRecord
from backburner.model.states import Kind
from backburner.model.task import preview
from backburner.store.protocol import Scope

if TYPE_CHECKING:
    from backburner.app.home import Backburner
    from backburner.runtime.schedules.service import ScheduleService


class Schedule:
    """Work that starts by the clock. Its record is as of the last call; `refresh` looks again."""

    def __init__(
        self,
        backburner: "Backburner",
        record: ScheduleRecord,
        *,
        created: bool = False,
        policy: Policy = FREE,
    ) -> None:
        self.policy = policy
        self._backburner = backburner
        self.record = record
        self._created = created
        self._scope = Scope(record.owner, record.session)

    def __repr__(self) -> str:
        return f"<Schedule {self.id} {self.state}>"

    @property
    def id(self) -> str:
        """Its name."""
        return self.record.id

    @property
    def state(self) -> ScheduleState:
        """As of the last call."""
        return self.record.state

    async def refresh(self) -> "Schedule":
        """Look again."""
        self.record = await self._service.find(self.id, self._scope)
        return self

    @acts(Action.SCHEDULE)
    async def pause(self) -> "Schedule":
        """Fire no more of it until `resume`; what would have fired meanwhile is not missed."""
        self.record = await self._service.pause(self.id, self._scope)
        return self

    @acts(Action.SCHEDULE)
    async def resume(self) -> "Schedule":
        """Go on with what comes. Conflict for a single time that has passed."""
        self.record = await self._service.resume(self.id, self._scope)
        return self

    @acts(Action.SCHEDULE)
    async def cancel(self) -> "Schedule":
        """End it. The tasks that it has started go on."""
        self.record = await self._service.cancel(self.id, self._scope)
        return self

    async def _played(self, name: str, given: Mapping[str, Any]) -> Any:  # noqa: ARG002 - see `acting.Acting`
        """What a dry run answers to one of the methods above."""
        self.record = replace(self.record, detail=f"{DRY_RUN} would {name} {self.id}")
        return self

    async def firings(self, *, limit: int = 50) -> list[Firing]:
        """What became of its last firings, newest first: their tasks, or why they were skipped."""
        await self.refresh()
        return await self._backburner.store.firings(self.id, limit=limit)

    def document(self) -> dict[str, Any]:
        """The schedule as JSON. ``task_id`` is the id that the task of its next firing will have;

        ``created`` says whether the call that gave this handle has made it.
        """
        from backburner.runtime.schedules.calendar import task_id

        at = self.record.next_at
        return schedule_document(
            self.record,
            created=self._created,
            next_task=None if at is None else task_id(self.id, at),
        )

    @property
    def _service(self) -> "ScheduleService":
        return service(self._backburner)


def unrecorded_schedule(
    backburner: "Backburner", scope: Scope, when: str, policy: Policy
) -> Schedule:
    """What a dry run would have scheduled. It is nowhere on disk."""
    record = ScheduleRecord(
        seq=0,
        id=ids.new_id().replace(ids.PREFIX, "sc_", 1),
        owner=scope.owner,
        session=scope.session or "",
        kind=Kind.SHELL,
        title=f"{DRY_RUN} {preview(when)}",
        spec={},
        zone="UTC",
        state=ScheduleState.PAUSED,
        created_at=clock.now(),
        detail=f"{DRY_RUN} would schedule: {preview(when)}",
    )
    return Schedule(backburner, record, policy=policy)


def service(backburner: "Backburner") -> "ScheduleService":
    """What can be done with the schedules of a home."""
    from backburner.runtime.schedules.service import ScheduleService  # slow to load

    return ScheduleService(backburner.store, backburner.home, backburner.settings, backburner.tasks)
