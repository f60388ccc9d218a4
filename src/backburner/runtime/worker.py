"""The worker of processes: claims them, starts them, adopts what it finds, sees all to the end.

Never runs a task twice: it is claimed on disk before the start, and whether a claimed start was
ever made is read from the wrapper's files, not guessed. Everything it learns reaches the record,
also when the disk is full for a while.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.errors import StoreError
from backburner.model.events import OVER, EventKind
from backburner.model.home import AttemptFolder, Home
from backburner.model.limits import Settings
from backburner.model.states import ErrorKind, State
from backburner.model.task import Task
from backburner.runtime.answers import hand_on
from backburner.runtime.closing import Closing
from backburner.runtime.escort import Escort
from backburner.runtime.fencing import Attempt, Fencing
from backburner.runtime.job import Job
from backburner.runtime.launches import OwnLaunch, discard_unneeded, launch_of
from backburner.runtime.logwatch import LogWatch
from backburner.runtime.ordering import what_keeps_it
from backburner.runtime.scribe import Entry, Scribe
from backburner.runtime.starting import Starter
from backburner.runtime.unstarted import leave_result
from backburner.store.news import News
from backburner.store.protocol import Store
from backburner.work import handover
from backburner.work.process import condition
from backburner.work.process.identity import boot_id
from backburner.work.process.tree import Tree

_RETRY_FIRST_S = 0.05
_RETRY_LONGEST_S = 5.0
_LOOK_EVERY_S = 1.0
_BEGINS_S = 10.0
"""A wrapper that got the word notes that it runs long before; else its job has blanked that."""
_HEEDED = (EventKind.STOP_REQUESTED, EventKind.ANSWERED, EventKind.SENT)
"""What others do to a job that has to be handed on to it."""


class ProcessWorker:
    """Carries out the processes of one home. Only the holder of the keeper lock may have one."""

    def __init__(
        self, store: Store, home: Home, settings: Settings, report: Callable[[str], None]
    ) -> None:
        self._store = store
        self._home = home
        self._report = report
        self._scribe = Scribe(store, report)
        self._logs = LogWatch()
        self._jobs: dict[str, Job] = {}
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._forsaken: set[Attempt] = set()
        """What went wrong here: whose it is now the record says."""
        self._unknown: set[Attempt] = set()
        """What the record had as ours at the last look, and nobody here knew of."""
        self._early: set[str] = set()
        """Of those that are being started: what others did to these is to be looked at then."""
        self._put_off = False
        """Something that was to be started could not be yet."""
        self._bell = asyncio.Event()
        self._unsubscribe = store.on_news(self._heard)
        self._logs.on_loss(home.database, self._bell.set)  # the keeper then looks for its home
        self._starter = Starter(home, cgroups=settings.cgroups)
        self._closing = Closing(store, home, self._scribe, self._starter.release, report)
        self._escort = Escort(
            store,
            home,
            self._logs,
            self._scribe,
            self._closing,
            release=self._starter.release,
            report=report,
        )
        self._fencing = Fencing(home, self._starter.tree, report)
        self._waiting = self._tidy = self._closed = False
        self.own_launch: OwnLaunch = lambda _: None
        self.spent: set[str] = set()
        """What jobs were started with that nobody needs any more, for who keeps it elsewhere."""
        self.leaving = False
        """Whoever works with it waits until nothing is left."""

    def _heard(self, news: News | None) -> None:
        """Look, where it concerns a job. What is to be started somebody brings (`start`), where the

        record says what has changed.
        """
        if not self._store.tells:
            self._bell.set()
            return
        heeded = self._busy.keys() if news is None else self._busy.keys() & news.of(*_HEEDED)
        self._early |= heeded - self._jobs.keys()
        if news is None or heeded or (self._put_off and news.of(*OVER)):
            self._bell.set()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to look after, and nothing waits for its time."""
        return not self._busy and not self._waiting

    async def adopt(self) -> None:
        """Take charge of everything that an earlier keeper has left. Before anything else.

        One look at the record decides what is ours: what others end after it is in our charge by
        then (`follow_record`).
        """
        active = await self._store.kept()
        if self._home.shared:
            ours = {_attempt_of(task) for task in active}
            await self._fencing.end_others(ours)
        self._starter.sweep(active)
        await discard_unneeded(self._store, self._home)
        for task in active:
            if task.state is not State.QUEUED:
                self._take_on(task, self._adopt(task))

    async def work(self) -> None:
        """One look for tasks to start and to stop, then wait for the next reason to look."""
        self._bell.clear()
        self._put_off = False
        await self._adopt_forsaken()
        for task in await self._store.waiting_for_keeper():
            if task.id not in self._busy:
                if task.state is State.QUEUED:
                    self._start_in_turn(task)
            elif task.stop is not None and task.id in self._jobs:
                self._jobs[task.id].ask_to_stop(task.stop)
        self._starter.tend()
        await hand_on(self._store, self._folder_of, self._report)
        self._waiting = bool(self._busy) or await self._store.any_active()
        if self.idle and not self._tidy:
            await discard_unneeded(self._store, self._home)
            self._tidy = True
        try:
            async with asyncio.timeout(await self._until_next_due()):
                await self._bell.wait()
        except TimeoutError:
            pass

    async def _adopt_forsaken(self) -> None:
        """What went wrong here, and is still ours: another machine may have begun it since."""
        forsaken = {attempt for attempt in self._forsaken if attempt[0] not in self._busy}
        if not forsaken:
            return
        kept = {_attempt_of(task): task for task in await self._store.kept()}
        for attempt in forsaken:
            if attempt[0] in self._busy:  # by now
                continue
            self._forsaken.remove(attempt)
            task = kept.get(attempt)
            if task is None:  # it is over, whoever has said so
                job = self._jobs.get(attempt[0])
                if job is not None and _attempt_of(job.task) == attempt:
                    del self._jobs[attempt[0]]
                self._fencing.end_tree(self._starter.tree(*attempt))
            elif task.place is not None:
                self._take_on(task, self._adopt(task))

    def _folder_of(self, task_id: str, attempt: int) -> AttemptFolder | None:
        job = self._jobs.get(task_id)
        return job.folder if job is not None and job.task.attempt == attempt else None

    async def _until_next_due(self) -> float:
        due = await self._store.next_due()
        if due is None:
            return _LOOK_EVERY_S
        return min(max(0, due - self._store.now()) / clock.SECOND, _LOOK_EVERY_S)

    def at_work(self) -> list[Task]:
        """What runs, and what has left processes behind."""
        return [job.task for job in self._jobs.values()]

    async def follow_record(self) -> None:
        """See Crew.follow_record: a claim of the last process may come after our `adopt`."""
        jobs = [*self._jobs.values()]  # first: the record knows of all of these then
        kept = {_attempt_of(task): task for task in await self._store.kept()}
        if self._closed:
            return
        for job in jobs:
            attempt = _attempt_of(job.task)
            if attempt not in kept:
                self._fencing.end(attempt, partial(job.end_tree, 0))
        unknown = {
            attempt
            for attempt, task in kept.items()
            if task.state is not State.QUEUED
            and task.id not in self._busy
            and attempt not in self._forsaken
        }
        for attempt in unknown & self._unknown:  # not what has ended while this look was made
            self._take_on(kept[attempt], self._adopt(kept[attempt]))
        self._unknown = unknown

    def look_again(self) -> None:
        """End the present wait for a reason to look."""
        self._bell.set()

    def start(self, task: Task) -> None:
        """Start one that is queued, as the next look would."""
        if task.id in self._busy:  # an earlier attempt of it
            self._put_off = True
        else:
            self._start_in_turn(task)

    def _start_in_turn(self, task: Task) -> None:
        if self._fencing.is_ending(_attempt_of(task)):  # of an earlier try that came to nothing
            self._put_off = True
        else:
            self._take_on(task, self._start(task))

    async def start_now(self, task: Task) -> bool:
        """The same, at once. False where it does not run: it may have to wait, or be over."""
        if task.id in self._busy or self._fencing.is_ending(_attempt_of(task)):
            return False
        begun: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._take_on(task, self._start(task, begun))
        return await begun

    async def end_everything(self) -> None:
        """The home is gone: a job that nobody can watch or stop any more must not go on."""
        ends = [job.end_tree(0) for job in self._jobs.values()]
        for error in await asyncio.gather(*ends, return_exceptions=True):
            if error is not None:
                self._report(f"a job could not be ended: {error}")
        for job in self._jobs.values():
            self._starter.release(job.task.place)

    async def close(self) -> None:
        """Let go. The jobs go on."""
        self._closed = True
        self._unsubscribe()
        for busy in self._busy.values():
            busy.cancel()
        await asyncio.gather(*self._busy.values(), return_exceptions=True)
        await self._fencing.close()
        self._logs.close()
        self._starter.close()

    def _take_on(self, task: Task, work: Awaitable[None]) -> None:
        async def guarded() -> None:
            try:
                await work
                self._jobs.pop(task.id, None)
            except Exception as error:  # noqa: BLE001 - one job's fault must not end the others
                self._report(f"{task.id}: will be adopted anew: {type(error).__name__}: {error}")
                await asyncio.sleep(_LOOK_EVERY_S)
                self._forsaken.add(_attempt_of(task))
            finally:
                del self._busy[task.id]
                self._early.discard(task.id)
                if self._put_off or self._forsaken or self.leaving or not self._store.tells:
                    self._bell.set()

        self._busy[task.id] = asyncio.create_task(guarded())
        self._tidy = False

    # Starting

    async def _start(self, task: Task, begun: "asyncio.Future[bool] | None" = None) -> None:
        """Where somebody waits for ``begun`` it may be another machine's, and is not ended here."""
        found = None
        try:
            found = await self._begin(task)
        finally:
            if begun is not None and not begun.done():
                begun.set_result(isinstance(found, Job))
        if isinstance(found, Job):
            await self._escort.to_end(found)
        elif found is not None and begun is None:
            await self._closing.refuse(task, found)

    async def _begin(self, task: Task) -> Job | Ending | None:
        """What runs now, if it does, or the end of what never will."""
        if task.stop is not None:  # asked to stop when it ran, or seemed to
            return Ending.canceled()
        if (in_vain := await what_keeps_it(self._store, task)) is not None:
            return in_vain
        try:
            launch = await launch_of(self._store, self._home, task, self.own_launch)
            waiting = self._starter.start(task, launch)
        except (OSError, ValueError, TypeError) as error:
            return _cannot_start(error)
        claimed = None
        try:
            claimed = await self._store.claim(task.id, task.attempt, waiting.place)
        except StoreError as error:
            self._report(f"{task.id}: cannot be started yet: {error}")
            # It stays queued, and is looked at again; or it is claimed, and we were not told.
            self._forsaken.add(_attempt_of(task))
            await asyncio.sleep(_RETRY_LONGEST_S)
        finally:
            if claimed is None:  # stopped meanwhile, or not on disk: nothing has run
                self._starter.give_up(waiting)
        if claimed is None:
            self._put_off = not await self._closing.was_ended(task) or self._put_off
            return None
        waiting.go()
        job = self._job(claimed, pid=waiting.place.pid, ours=True)
        self._started_for_good(claimed)
        return job

    def _started_for_good(self, task: Task) -> None:
        if not task.retries_left:  # a further attempt needs its environment too
            handover.discard(self._home, task.id, task.hand_over)
            if self._home.shared and task.hand_over is not None:
                self.spent.add(task.hand_over)

    # Adopting

    async def _adopt(self, task: Task) -> None:
        assert task.place is not None
        if task.place.boot_id != boot_id():
            await self._escort.end_after_reboot(task)
            return
        if task.state.terminal:
            await self._escort.until_gone(self._job(task, pid=None, ours=False))
            return
        folder = self._home.attempt(task.id, task.attempt)
        found = condition.inspect(folder)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_BEGINS_S):
                while isinstance(found, condition.Alive) and found.pid is None:
                    await asyncio.sleep(_RETRY_FIRST_S)  # begun just before the last keeper died
                    found = condition.inspect(folder)
        if isinstance(found, condition.NotBegun) and task.ended_for is None:
            again = await self._scribe.insist(
                lambda: self._store.requeue(
                    task.id, task.attempt, "the keeper died before it could start it"
                )
            )
            if again is not None:
                leave_result(self._home, again)  # where somebody has asked for its end
            return
        self._started_for_good(task)  # the last keeper may have died before it said so
        pid = found.pid if isinstance(found, condition.Alive) else None
        job = self._job(task, pid=pid, ours=False)
        # Beside, and not before: on a full disk its limits hold and its log is cut all the same.
        self._scribe.note_beside(task, EventKind.ADOPTED)
        await self._escort.to_end(job)

    def _job(self, task: Task, *, pid: int | None, ours: bool) -> Job:
        assert task.place is not None
        tree = Tree(str(self._home.root), task.id, task.attempt, task.place.cgroup)
        folder = self._home.attempt(task.id, task.attempt)
        job = Job(task, folder, tree, Entry(self._scribe, task), pid=pid, ours=ours)
        self._jobs[task.id] = job
        if not ours or not self._store.tells or task.id in self._early:
            self._bell.set()  # a stop that came while it was starting is heard now
        return job


def _attempt_of(task: Task) -> Attempt:
    return task.id, task.attempt


def _cannot_start(error: Exception) -> Ending:
    return Ending.failed(ErrorKind.SPAWN, f"it could not be started: {error}")
