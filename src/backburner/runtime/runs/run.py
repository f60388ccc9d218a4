"""One call under way in this process: what it says, how it is ended, how it ended.

Before its record a call lives in memory only (D1); with it, what it says goes to its log and into
the record as well.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from backburner.model import clock
from backburner.model.clock import format_duration
from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder
from backburner.model.outcome import Outcome
from backburner.model.states import ErrorKind
from backburner.model.task import EndedFor, NewTask, Progress, Task
from backburner.runtime.runs.sink import RunSink
from backburner.work.log.bounds import LogBounds
from backburner.work.runlog import RunLog
from backburner.work.tools import prints
from backburner.work.tools.context import Context
from backburner.work.tools.execution import Failure, ending_of, failure_of

if TYPE_CHECKING:
    from backburner.runtime.runs.worker import RunWorker

Work = Callable[[Context], Awaitable[Outcome | Failure]]
"""What is carried out. It raises nothing but CancelledError."""

_CANCEL_AGAIN_S = 1.0
_making = threading.Lock()

_CLOSED = RunLog(LogBounds(0, 0))
"""Of runs that have ended without a word: their threads have nothing to say any more."""
_CLOSED.close()


class Run:
    """Knows one call from its start to its end."""

    __slots__ = (
        "_alarm", "_grace_ends", "_log", "_loop", "_new", "_over", "_waiters", "_worker",
        "abandoned", "began", "context", "counted", "deadline", "ended_for", "folder", "progress",
        "recording", "sink", "status", "stops_heard", "task", "work",
    )  # fmt: skip

    def __init__(
        self, worker: "RunWorker", new: NewTask | Callable[[], NewTask], stops_heard: int
    ) -> None:
        """``stops_heard`` is how many its worker had heard of before it."""
        self._new = new
        self.stops_heard = stops_heard
        self._log: RunLog | None = None
        self._worker = worker
        self.sink = RunSink(worker, self)
        self.context = Context(self.sink)
        self.task: Task | None = None
        """Its record, once it has one."""
        self.recording: asyncio.Future[Task] | None = None
        self.folder: AttemptFolder | None = None
        self.work: asyncio.Task[Outcome | Failure] | None = None
        self.ended_for: EndedFor | None = None
        self.status: str | None = None
        self.progress: Progress | None = None
        self._loop = asyncio.get_running_loop()
        self.deadline: float | None = None
        """When its time is up, by the loop's clock; see `run_times`."""
        self._alarm: asyncio.TimerHandle | None = None
        self._grace_ends: float | None = None
        self._over: Callable[[Run], None] | None = None
        self._waiters: list[asyncio.Future[Task | None]] = []
        self.began: tuple[int, int] | None = None
        """Wall time and boot time of its begin."""
        self.counted = False
        """It takes a place among the background runs of its process."""
        self.abandoned = False
        """Its application closes: how it ends now is not its own ending."""

    @property
    def new(self) -> NewTask:
        """What is, or would be, written when it is put on record; made when it is needed."""
        if not isinstance(self._new, NewTask):
            self._new = self._new()
        return self._new

    @property
    def id(self) -> str | None:
        """Of its record; None while nobody has meant to write one."""
        return self._new.id if isinstance(self._new, NewTask) else None

    @property
    def log(self) -> RunLog:
        """What it writes; made when it writes something."""
        if self._log is None:
            with _making:  # its threads may write at once
                if self._log is None:
                    log = RunLog(self._worker.bounds)
                    if self.folder is not None:
                        log.keep_in(self.folder)
                    self._log = log
        return self._log

    def keep_in(self, folder: AttemptFolder) -> None:
        """It is on record: what it writes goes into this folder."""
        with _making:
            self.folder = folder
            if self._log is not None:
                self._log.keep_in(folder)

    def close_log(self) -> tuple[int, int]:
        """It is over: how many bytes it has written, and how many of those are gone."""
        with _making:
            if self._log is None:
                self._log = _CLOSED
        return self._log.close()

    def begin(self, work: Work) -> "asyncio.Task[Outcome | Failure]":
        """Let it run."""
        self.began = (self._worker.store.now(), clock.boot_now())
        prints.begin()
        self.work = self._loop.create_task(_printing(work, self.context, self.sink.output))
        self.work.add_done_callback(self._ended)
        return self.work

    def _ended(self, _: object) -> None:
        prints.end()
        self._worker.forget(self)
        self._tell_over()

    # Ending

    def end(self, reason: EndedFor, grace_s: float) -> None:
        """Cancel it. A stop that is more urgent than the last one cuts the grace short.

        Heard of again with every change of the record until it has ended, which gives it no more.
        """
        assert self.work is not None
        if self.work.done():
            return  # it keeps the ending of its own
        if self.ended_for is None:
            self.ended_for = reason
            self.work.cancel()
        ends = self._loop.time() + grace_s
        if self._grace_ends is None or ends < self._grace_ends:
            self._grace_ends = ends
            self.quiet()
            self._alarm = self._loop.call_at(ends, self._insist)

    def _insist(self) -> None:
        """It has had its grace."""
        assert self.work is not None
        if self.work.done():
            return
        self.work.cancel()
        self._alarm = self._loop.call_later(_CANCEL_AGAIN_S, self._give_up)

    def _give_up(self) -> None:
        """It does not heed its cancellation: a thread cannot be ended from outside."""
        self._tell_over()

    def when_over(self, over: "Callable[[Run], None]") -> None:
        """Have this called once when the call has ended, or is given up."""
        assert self.work is not None
        self._over = over
        if self.work.done():
            self._loop.call_soon(self._tell_over)

    def _tell_over(self) -> None:
        if self._over is not None:
            over, self._over = self._over, None
            over(self)

    # Who waits for it here

    def recorded_end(self) -> "asyncio.Future[Task | None]":
        """Its record, when that says how it ended; None where another attempt has its place."""
        waiter: asyncio.Future[Task | None] = self._loop.create_future()
        # Without those who have given up: somebody may ask once a second for days.
        self._waiters = [*(each for each in self._waiters if not each.done()), waiter]
        return waiter

    def end_is_recorded(self, task: Task | None) -> None:
        """Tell those who wait here. Nobody asks anything of it after that."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(task)
        with contextlib.suppress(AttributeError):  # it was given up, and its application closes
            # These know it too. Without a cycle it is gone now, and no work for the collector.
            del self.sink, self.context, self.work

    def ending(self) -> Ending:
        """How it ended, or is taken to have ended."""
        assert self.work is not None
        self.quiet()
        if self.ended_for is EndedFor.TIMEOUT:
            limit = format_duration(self.new.max_runtime_s or 0)
            text = f"it passed its maximum run time of {limit}"
            return Ending.failed(ErrorKind.TIMEOUT, text)
        if self.ended_for is EndedFor.STOP or not self.work.done() or self.work.cancelled():
            return Ending.canceled()
        return ending_of(self.work.result())

    def quiet(self) -> None:
        """No more alarms."""
        self.deadline = None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    @property
    def outcome(self) -> Outcome | None:
        """What it gave back, where it did."""
        if self.work is None or not self.work.done() or self.work.cancelled():
            return None
        given = self.work.result()
        return given if isinstance(given, Outcome) else None


async def _printing(work: Work, context: Context, write: prints.Write) -> Outcome | Failure:
    prints.captured(write)
    try:
        return await work(context)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - one that left this would end the event loop
        return failure_of(error, name=type(error).__name__, arguments={})


def result_document(ending: Ending, outcome: Outcome | None) -> dict[str, Any]:
    """What result.json says: the ending, and the raw output beside it."""
    document = ending.document()
    if outcome is not None and outcome.raw_output is not None:
        document["raw_output"] = outcome.raw_output
    return document
