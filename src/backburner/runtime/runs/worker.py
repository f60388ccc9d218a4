"""The worker of an application: carries out tools and agents in its event loop, and sees them to
their ends.

A run is on disk before it begins (`spawn`), or when it outlives its budget (`budget`). Its end
reaches the record also when the disk is full for a while. Whether this worker lives is told by its
`presence`; what it leaves behind when it dies is seen to by the keeper (`recovery`), or by the
other nodes of a shared record (`dead_nodes`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from typing import Any

from backburner.model.ending import Ending
from backburner.model.errors import (
    BackburnerError,
    LimitReached,
    UsageError,
)
from backburner.model.events import OVER, EventKind
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.states import ErrorKind
from backburner.model.task import EndedFor, NewTask, Task
from backburner.model.values import value
from backburner.runtime.feed import Feed
from backburner.runtime.runs.finishing import Finishing
from backburner.runtime.runs.folders import missing_folder
from backburner.runtime.runs.letting_go import CLOSED, HEEDS_S, LettingGo
from backburner.runtime.runs.presence import LockPresence, Presence, place_of
from backburner.runtime.runs.run import Run, Work
from backburner.runtime.runs.run_times import RunTimes
from backburner.runtime.runs.unheard import Unheard
from backburner.runtime.scribe import whole
from backburner.runtime.unstarted import leave_result
from backburner.store.news import News
from backburner.store.protocol import Scope, Store
from backburner.work.log.bounds import LogBounds

_log = logging.getLogger("backburner.runs")

_CLOSING_S = HEEDS_S
"""What calls get for ending when their application closes, and the others for hearing of it."""

_LOOK_AGAIN_S = 1.0
_LOOK_PAUSE_S = 0.01
"""Between two looks at the record: each of our own runs changes it twice, and most looks are for
what others did."""


@value
class Claim:
    """Something that was waiting for an application, and how this one carries it out."""

    work: Work
    session: Any = None
    folder: str | None = None


class RunWorker:
    """All runs of one open Backburner."""

    def __init__(self, store: Store, home: Home, settings: Settings, feed: Feed) -> None:
        self.store = store
        self.feed = feed
        self.settings = settings
        self.home = home
        self.find_work: Callable[[Task], Claim | None] = lambda _: None
        """What this application can do for a task that waits for one."""
        self._presence: Presence = LockPresence(store, home, self.report)
        self._finishing = Finishing(store, home, settings, gone=self._gone, report=self.report)
        self._drafts: set[Run] = set()
        """Calls that are not on record."""
        self._runs: dict[str, Run] = {}
        self._run_times = RunTimes(self._runs)
        self._letting_go = LettingGo(
            store,
            home,
            self._runs,
            worker=lambda: self._presence.worker,
            gone=self._gone,
            report=self.report,
        )
        self._unheard = Unheard(store, home, self._letting_go.give_up)
        self._gone_one = asyncio.Event()
        self._places = 0
        self._bell = asyncio.Event()
        self._stops_heard = 0
        """How often somebody may have asked for the end of something that runs, or will, here."""
        self._put_off = False
        """Something that waits could not be taken up yet."""
        self._beside: set[asyncio.Task[Any]] = set()
        self._unsubscribe = store.on_news(self._heard)
        self._attending = asyncio.create_task(self._attend())
        self.bounds = LogBounds(settings.log_head, settings.log_tail)
        self._closing = False

    def is_present_by(self, presence: Presence) -> None:
        """Before anything runs: in a shared record the engine says whether it lives."""
        self._presence = presence

    def report(self, text: str) -> None:
        """Something went wrong that no caller hears of."""
        _log.warning("%s", text)

    # Starting

    def draft(
        self, new: NewTask | Callable[[], NewTask], *, session: Any, folder: str | None
    ) -> Run:
        """A call that is not on record, and has not begun; ``new`` is what its record would be."""
        if self._closing:
            raise UsageError("this Backburner is closing", remedy="start it in an open one")
        run = Run(self, new, self._stops_heard)
        run.context.session = session
        run.context.folder = folder
        self._drafts.add(run)
        return run

    def forget(self, run: Run) -> None:
        """A call has ended that may never have been on record."""
        self._drafts.discard(run)

    async def start(
        self,
        new: NewTask,
        work: Work,
        *,
        limit: int,
        session: Any,
        folder: str | None = None,
        fresh: bool = False,
    ) -> Task:
        """Write the task, then carry it out here. The same id comes back as the task there is.

        With a ``fresh`` id, which no task can have yet, its folder is made meanwhile.
        """
        run = self.draft(new, session=session, folder=folder)
        self._take_place(run)
        try:
            await self._presence.begin(importable=bool(new.spec.get("reference")))
            place = place_of(self._presence.worker)
            begun = self.store.begin(new, place, limit=limit)
            if fresh:
                self._finishing.prepare(self.home.attempt(new.id, 1))
            try:
                with self._unheard.writing(new.id, claimed=False):
                    task, _ = await begun
            finally:
                self._begun(run, work, begun)
        except BackburnerError:
            if fresh:
                self._finishing.put_away(self.home.attempt(new.id, 1))
            raise
        finally:
            await self._give_back_place(run)
        return task

    def _take_place(self, run: Run) -> None:
        """Room for one more, until its work is over; where that never begins, it is given back."""
        most = self.settings.tools_per_worker
        if self._places >= most:
            self.forget(run)
            raise LimitReached(
                f"this process has {most} active background runs, and {most} is the limit",
                remedy="wait for one to end, or stop one",
            )
        self._places += 1

    async def _give_back_place(self, run: Run) -> None:
        if run.began is None:
            self._places -= 1
            self.forget(run)
            if run.task is not None:  # it is on record, and this application closes
                await whole(self._letting_go.give_up(run.task, CLOSED))

    def _begun(self, run: Run, work: Work, begun: "asyncio.Future[tuple[Task, bool]]") -> None:
        """What is on disk as running has to run, also when nobody waits for it any more."""
        if begun.done() and begun.exception() is None:
            task, is_new = begun.result()
            if is_new:
                self._go(run, task, work)

    def _go(self, run: Run, task: Task, work: Work) -> None:
        self.take_on(run, task)
        if not self._closing:
            run.begin(work)
            self._see_to_end(run, counted=True)

    async def _begin(
        self,
        new: NewTask,
        *,
        limit: int | None,
        parked: bool = False,
        began: tuple[int, int] | None = None,
    ) -> tuple[Task, bool]:
        await self._presence.begin(importable=bool(new.spec.get("reference")))
        at, boot = began or (None, None)
        place = place_of(self._presence.worker, boot)
        return await self.store.begin(new, place, limit=limit, parked=parked, began_at=at)

    def take_on(self, run: Run, task: Task) -> None:
        """This run has a record now, and whoever wants to stop it is heard."""
        self._drafts.discard(run)
        run.task = task
        run.context.task = task.id
        run.keep_in(self.home.attempt(task.id, task.attempt))
        self._runs[task.id] = run
        if run.stops_heard != self._stops_heard:
            self._bell.set()  # a stop that came meanwhile is heard now

    async def recorded(self, run: Run, *, parked: bool = False, limit: int | None = None) -> Task:
        """The record of a run; written now where it has none. What goes wrong may be tried again"""
        if run.task is not None:
            return run.task
        if run.recording is None:
            run.recording = asyncio.ensure_future(self._record(run, parked=parked, limit=limit))
        try:
            return await asyncio.shield(run.recording)
        except BackburnerError:
            run.recording = None
            raise

    async def _record(self, run: Run, *, parked: bool, limit: int | None) -> Task:
        task, _ = await self._begin(run.new, limit=limit, parked=parked, began=run.began)
        self.take_on(run, task)
        if run.status is not None or run.progress is not None:
            await run.sink.note()
        self._see_to_end(run, counted=False)
        return task

    # Attending

    def look_again(self) -> None:
        """There may be something to take up."""
        self._bell.set()

    def can_do_more(self) -> None:
        """The same; a tool or an agent may have come."""
        self._bell.set()
        self._presence.look_again()

    async def begin(self) -> None:
        """The same; returns when the record knows what this worker can do."""
        self.can_do_more()
        await self._presence.begin()
        await self._presence.said()

    def _heard(self, news: News | None) -> None:
        """Look, where it concerns a run. What waits for an application somebody brings (`take_up`),

        where the record says what has changed.
        """
        stops = None if news is None else news.of(EventKind.STOP_REQUESTED)
        if stops is None or stops:
            self._stops_heard += 1
        if (
            news is None
            or not self._runs.keys().isdisjoint(stops or ())
            or (self._put_off and news.of(*OVER))
        ):
            self._bell.set()

    async def begin_now(self, task: Task) -> bool:
        """Begin what waits for an application. False where it does not run."""
        return not self._closing and await asyncio.shield(self._take_up_beside(task, taken=False))

    def take_up(self, task: Task) -> None:
        """Begin what waits for an application, as soon as there is room."""
        if not self._closing:
            self._take_up_beside(task)

    def _take_up_beside(self, task: Task, *, taken: bool = True) -> "asyncio.Task[bool]":
        taking = asyncio.create_task(self._take_up_or_report(task, taken=taken))
        self._beside.add(taking)
        taking.add_done_callback(self._beside.discard)
        return taking

    def unfit(self, task: Task) -> str | None:
        """Why this application cannot carry it out; None where it can, or will say why not."""
        try:
            claim = self.find_work(task)
        except UsageError:
            return None
        if claim is None:
            return f"there is no {task.kind} {task.spec.get(task.kind.value)!r}"
        return missing_folder(claim.folder)

    @property
    def full(self) -> bool:
        """Whether something that is taken now would have to wait."""
        return self._places >= self.settings.tools_per_worker

    def at_work(self) -> list[Task]:
        """What runs here and is on record."""
        return [run.task for run in self._runs.values() if run.task is not None]

    async def follow_record(self) -> None:
        """End runs whose attempts are over in the record: this process was taken for dead. What the

        record has as begun here, and does not run, is seen to as well.
        """
        runs = [*self._runs.values()]  # before the look at the record, which knows of all of them
        kept = await self._unheard.see_to(self._presence.worker.id, self._ids)
        ours = {(task.id, task.attempt) for task in kept}
        lost = (
            self._letting_go.end_fenced_off(run)
            for run in runs
            if run.task is not None and (run.task.id, run.task.attempt) not in ours
        )
        await asyncio.gather(*lost)  # at once: each may take its time to heed that

    def _ids(self) -> Collection[str | None]:
        """Of what runs here, on record or not yet."""
        return self._runs.keys() | {run.id for run in self._drafts}

    async def _attend(self) -> None:
        """Hear of stops, and of what waits for an application."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            self._put_off = False
            try:
                if self._runs:
                    stops = await self.store.stops_of_worker(self._presence.worker.id)
                    for task_id, stop in stops.items():
                        if run := self._runs.get(task_id):
                            run.end(EndedFor.STOP, stop.grace_s)
                for task in await self.store.waiting_for_application():
                    await self._take_up_or_report(task)
            except Exception as error:  # noqa: BLE001 - runs depend on it: stops are heard here
                self.report(f"will look again: {type(error).__name__}: {error}")
                self._bell.set()
                await asyncio.sleep(_LOOK_AGAIN_S)
            await asyncio.sleep(_LOOK_PAUSE_S)

    async def _take_up_or_report(self, task: Task, *, taken: bool = True) -> bool:
        try:
            # To its end: what it has claimed, no other will carry out.
            return await whole(self._take_up(task, taken=taken))
        except Exception as error:  # noqa: BLE001 - others must not wait for this one
            self.report(f"{task.id}: cannot be taken up: {type(error).__name__}: {error}")
            self._put_off = True
            asyncio.get_running_loop().call_later(_LOOK_AGAIN_S, self._bell.set)
            return False

    async def _take_up(self, task: Task, *, taken: bool) -> bool:
        """Whether it runs here now. What is not ``taken`` may be another machine's."""
        try:
            claim = self.find_work(task)
        except UsageError as error:  # the tool has changed since
            if not taken:
                return False
            ending = Ending.failed(ErrorKind.SPAWN, f"it cannot be taken up: {error}")
            failed = await self.store.refuse(task.id, task.attempt, ending)
            if failed is not None:
                leave_result(self.home, failed)
            return False
        earlier = self._runs.get(task.id)
        if earlier is not None:
            self._see_to_earlier(earlier, task)
        if earlier is not None or claim is None or self.full:
            self._put_off = True
            return False
        new = NewTask(
            task.id, task.owner, task.session, task.kind, task.title, task.spec,
            task.max_runtime_s, task.parent, task.schedule,
        )  # fmt: skip
        run = self.draft(new, session=claim.session, folder=claim.folder)
        self._take_place(run)
        try:
            await self._presence.begin()
            place = place_of(self._presence.worker)
            with self._unheard.writing(task.id, claimed=True):
                claimed = await self.store.claim(task.id, task.attempt, place)
            if claimed is not None:
                self._go(run, claimed, claim.work)
            else:  # another one was quicker, or there is no room for it
                self._put_off = True
        finally:
            await self._give_back_place(run)
        return claimed is not None

    def _see_to_earlier(self, run: Run, task: Task) -> None:
        """This process was taken for dead: what it still has of an attempt before goes first."""
        assert run.task is not None
        if run.task.attempt < task.attempt:
            ending = asyncio.create_task(self._letting_go.end_fenced_off(run))
            self._beside.add(ending)
            ending.add_done_callback(self._beside.discard)

    # To the end

    def _see_to_end(self, run: Run, *, counted: bool) -> None:
        """When the call is over, its record is told."""
        run.counted = counted
        if run.new.max_runtime_s is not None:
            self._run_times.limit(run, run.new.max_runtime_s)
        run.when_over(self._over)

    def _over(self, run: Run) -> None:
        if run.counted:
            self._places -= 1  # before anyone is told, who might want it
            if self._put_off:
                self._bell.set()
        if not run.abandoned:
            self._finishing.see_off(run)

    def _gone(self, run: Run) -> None:
        if self._runs.get(run.new.id) is run:  # and no later attempt
            del self._runs[run.new.id]
        self._gone_one.set()
        if self._put_off:
            self._bell.set()

    def recorded_end(self, task_id: str, scope: Scope) -> "asyncio.Future[Task | None] | None":
        """Its record when it has ended, where it runs here; None where it does not."""
        run = self._runs.get(task_id)
        if run is None or run.new.owner != scope.owner or scope.session not in (
            None, run.new.session,
        ):  # fmt: skip
            return None
        return run.recorded_end()

    # Leaving

    async def drain(self) -> None:
        """Take on nothing more that others have started; returns when the last run has ended."""
        await self._presence.drain()
        while self._runs:
            self._gone_one.clear()
            await self._gone_one.wait()

    async def close(self) -> None:
        """The application closes: what still runs here cannot go on here.

        It is absent at the end, whatever went wrong before, so that others see to what is left.
        """
        self._closing = True
        async with contextlib.AsyncExitStack() as last_first:
            last_first.push_async_callback(self._presence.end)
            last_first.push_async_callback(self._finishing.close, _CLOSING_S)
            last_first.callback(self._run_times.close)
            last_first.push_async_callback(self._abandon_all)
            last_first.push_async_callback(self._cancel_drafts)
            last_first.push_async_callback(self._attend_no_more)
            with contextlib.suppress(TimeoutError):  # it takes on nothing more, whoever knows of it
                async with asyncio.timeout(_CLOSING_S):
                    await self._presence.drain()

    async def _attend_no_more(self) -> None:
        self._unsubscribe()
        self._attending.cancel()
        await asyncio.gather(self._attending, *self._beside, return_exceptions=True)

    async def _abandon_all(self) -> None:
        await asyncio.gather(*(self._letting_go.abandon(run) for run in [*self._runs.values()]))

    async def _cancel_drafts(self) -> None:
        """Calls whose budget is not spent: nobody would hear of their ends."""
        calls = [run.work for run in self._drafts if run.work is not None]
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls, timeout=_CLOSING_S)
