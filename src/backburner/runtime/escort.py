"""Goes with a job to its end: its log, those who watch it, and what it leaves behind.

From its start or its adoption on. How an end reaches the record is `closing`'s.
"""

import contextlib
from collections.abc import Callable, Generator, Sequence

from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.home import AttemptFolder, Home
from backburner.model.limits import DEFAULT_GRACE_S
from backburner.model.states import ErrorKind
from backburner.model.task import Place, Task
from backburner.runtime.allowance import witnesses
from backburner.runtime.attendant import Attendant, attending, conclude
from backburner.runtime.closing import Closing
from backburner.runtime.job import Job, ending_of
from backburner.runtime.logwatch import LogWatch, WatchedLog
from backburner.runtime.ordering import is_tried_again
from backburner.runtime.output import measure_output
from backburner.runtime.report import Drain, Reporter
from backburner.runtime.scribe import Scribe
from backburner.runtime.verdict import verdicts
from backburner.runtime.watching.attendants import watchers
from backburner.runtime.watching.ledger import Ledger
from backburner.store.protocol import Facts, Store
from backburner.work import shell
from backburner.work.process import condition


class Escort:
    """Of all jobs of one worker."""

    def __init__(
        self,
        store: Store,
        home: Home,
        logs: LogWatch,
        scribe: Scribe,
        closing: Closing,
        *,
        release: Callable[[Place | None], None],
        report: Callable[[str], None],
    ) -> None:
        self._store = store
        self._home = home
        self._logs = logs
        self._scribe = scribe
        self._closing = closing
        self._release = release
        self._report = report

    async def to_end(self, job: Job) -> None:
        """Until it and all that it has started are over, and the record says so."""
        task = job.task
        with self._watching_log(job) as log:
            attendants = self._attendants(job)
            log.attendants = attendants
            async with attending(attendants, self._report):
                ending = await job.until_over()
            ending = await conclude(attendants, ending, self._report)
            again = is_tried_again(task, ending)
            if again:  # what this attempt has left behind would be in the way of the next
                await job.end_tree(DEFAULT_GRACE_S)
            leftovers = await job.leftovers()
            if leftovers:
                log.look()
            else:
                job.tree.dissolve()
                self._logs.remove(log)  # trims it, before the record says how much there is
            if again:
                if await self._closing.fail_try(task, ending):
                    return
                ending = Ending.canceled()  # it would have gone on
            await self._closing.finish(task, ending, output=log.output, leftovers=leftovers)
        if leftovers:
            await self.until_gone(job)

    def _attendants(self, job: Job) -> Sequence[Attendant]:
        """Who goes with this job."""
        return (
            *verdicts(job.task, job.folder),
            *witnesses(job.task, job.folder),
            *self._observers(job.task, job.folder, job.tree.members, adopted=not job.ours),
        )

    def _observers(
        self,
        task: Task,
        folder: AttemptFolder,
        processes: Callable[[], Sequence[int]],
        *,
        adopted: bool,
    ) -> Sequence[Attendant]:
        """Those that read what a job has written, also of one that did not outlive a reboot."""
        ledger = Ledger(self._store, task, self._scribe.insist, adopted=adopted)
        reporter = Reporter(self._store, task, folder, self._report)
        return (reporter, *watchers(ledger, folder, processes))

    async def until_gone(self, job: Job) -> None:
        """The task has ended, and processes of it have not: watch those, and their output."""
        task = job.task
        with self._watching_log(job) as log:
            log.attendants = (Drain(job.folder),)
            await job.until_gone()
        job.tree.dissolve()
        self._release(task.place)
        output = log.output
        await self._scribe.insist(
            lambda: self._store.note(
                task.id, task.attempt, EventKind.LEFTOVERS, Facts(leftovers=0, output=output)
            )
        )

    @contextlib.contextmanager
    def _watching_log(self, job: Job) -> Generator[WatchedLog]:
        spec = job.task.spec
        apart = bool(spec.get("separate_stderr"))
        bounds = shell.log_bounds(spec)
        log = WatchedLog(job.folder, job.task.attempt, bounds, separate_stderr=apart)
        self._logs.add(log)
        try:
            yield log
        finally:
            self._logs.remove(log)
            job.let_go()

    async def end_after_reboot(self, task: Task) -> None:
        """Its processes went with the machine; what its files say of its end holds."""
        if task.state.terminal:
            await self._scribe.insist(
                lambda: self._store.note(
                    task.id, task.attempt, EventKind.LEFTOVERS, Facts(leftovers=0)
                )
            )
            return
        folder = self._home.attempt(task.id, task.attempt)
        found = condition.inspect(folder)
        ending = (
            ending_of(found)
            if isinstance(found, condition.Ended | condition.Settled)
            else Ending.failed(ErrorKind.ORPHANED, "the machine was restarted while it ran")
        )
        observers = self._observers(task, folder, list, adopted=True)
        attendants = (*verdicts(task, folder), *observers)
        ending = await conclude(attendants, ending, self._report)
        if is_tried_again(task, ending):
            if await self._closing.fail_try(task, ending):
                return
            ending = Ending.canceled()
        await self._closing.finish(task, ending, output=measure_output(folder, patience_s=0))
