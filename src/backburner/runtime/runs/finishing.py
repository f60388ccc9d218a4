"""Seeing runs off: the last words, the files, the end in the record, and then those who wait.

Each step calls the next one when it is done, because a coroutine for each run would cost more than
all of them do. What goes wrong is seen to by coroutines: an end reaches the record also when the
disk is full for a while.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from backburner.model.ending import Ending
from backburner.model.errors import StoreClosed
from backburner.model.home import AttemptFolder, Home
from backburner.model.limits import Settings
from backburner.model.task import EndedFor, Task
from backburner.model.values import value
from backburner.runtime.children import ends_its_children, stop_children
from backburner.runtime.runs.archive import Archivist, prepare, put_all, put_away
from backburner.runtime.runs.run import Run, result_document
from backburner.runtime.scribe import NOT_TAKEN, UNRECORDABLE, insist
from backburner.store.protocol import Output, Store


@value
class _End:
    """What the record is told."""

    ending: Ending
    output: Output
    usage: Mapping[str, int] | None


class Finishing:
    """Of the runs of one worker. ``gone`` is told of each that is not its business any more."""

    def __init__(
        self,
        store: Store,
        home: Home,
        settings: Settings,
        *,
        gone: Callable[[Run], None],
        report: Callable[[str], None],
    ) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._gone = gone
        self._report = report
        self._archivist = Archivist()
        self._under_way: set[Run] = set()
        self._beside: set[asyncio.Task[None]] = set()

    async def close(self, patience_s: float) -> None:
        """Wait for those that are under way, for so long."""
        if self._under_way:
            ends = [run.recorded_end() for run in self._under_way]
            await asyncio.wait(ends, timeout=patience_s)
        if self._beside:  # also what the last of them have left to be done
            await asyncio.wait(self._beside, timeout=patience_s)
        self._archivist.close()

    def prepare(self, folder: AttemptFolder) -> None:
        """Its begin is being written."""
        self._archivist.do(folder, prepare)

    def put_away(self, folder: AttemptFolder) -> None:
        """It did not begin."""
        self._archivist.do(folder, put_away)

    def see_off(self, run: Run) -> None:
        """Its call is over, or is given up."""
        assert run.work is not None
        self._under_way.add(run)
        if not run.work.done():
            run.sink.output("stderr", "it did not heed its cancellation; its answer is dropped\n")
        elif run.ended_for is EndedFor.STOP:
            run.sink.output("stderr", "stopped on request\n")
        if run.sink.has_said_all:
            self._put_files(run, run.ending())
        else:
            self._do_beside(self._hear_out(run, run.ending()))

    async def _hear_out(self, run: Run, ending: Ending) -> None:
        try:
            await run.sink.finish()
        except Exception as error:  # noqa: BLE001 - what it said last is not worth its end
            self._report(f"{run.new.id}: its last words are not on record: {error}")
        self._put_files(run, ending)

    def _put_files(self, run: Run, ending: Ending) -> None:
        assert run.folder is not None
        outcome = run.outcome
        images, usage = (outcome.images, outcome.usage) if outcome is not None else ((), None)
        end = _End(ending, Output(*run.close_log()), usage)
        self._archivist.do(
            run.folder,
            partial(put_all, result_document(ending, outcome), images, self._settings),
            partial(self._record, run, end),
        )

    def _record(self, run: Run, end: _End, complaints: Sequence[str]) -> None:
        for complaint in complaints:
            self._report(f"{run.new.id}: {complaint}")
        try:
            recording = asyncio.ensure_future(self._write(run, end))
        except StoreClosed:
            self._let_go(run)
        else:
            recording.add_done_callback(partial(self._recorded, run, end))

    def _write(self, run: Run, end: _End) -> Awaitable[Task | None]:
        assert run.task is not None
        return self._store.finish(
            run.task.id,
            run.task.attempt,
            end.ending,
            output=end.output,
            usage=end.usage,
            begun=run.task,
        )

    def _recorded(self, run: Run, end: _End, recording: "asyncio.Future[Task | None]") -> None:
        if recording.cancelled():
            self._let_go(run)
        elif recording.exception() is None:
            self._told(run, recording.result())
        else:
            self._do_beside(self._insist(run, end))

    async def _insist(self, run: Run, end: _End) -> None:
        """The record has not taken it; the disk may be full, or the record locked."""
        try:
            try:
                finished = await insist(lambda: self._write(run, end), self._report)
            except NOT_TAKEN as error:
                self._report(f"{run.new.id}: its end cannot be recorded as it is: {error}")
                without = _End(UNRECORDABLE, end.output, None)
                finished = await insist(lambda: self._write(run, without), self._report)
        except StoreClosed:
            self._let_go(run)
        except BaseException:
            self._let_go(run)
            raise
        else:
            self._told(run, finished)

    def _told(self, run: Run, finished: Task | None) -> None:
        """The record has its end, or does not want it."""
        task = run.task
        assert task is not None
        self._let_go(run, finished)
        if finished is None:
            self._report(f"{task.id}: attempt {task.attempt} was fenced off; its end is dropped")
        elif ends_its_children(task):
            self._do_beside(self._stop_children(task))

    async def _stop_children(self, task: Task) -> None:
        """They end with it. Where this application closes before, others find them."""
        with contextlib.suppress(StoreClosed):
            await insist(partial(stop_children, self._store, self._home, task), self._report)

    def _let_go(self, run: Run, finished: Task | None = None) -> None:
        """Where it could not be recorded, the keeper sees to what is left."""
        self._under_way.discard(run)
        self._gone(run)
        run.end_is_recorded(finished)

    def _do_beside(self, work: Coroutine[Any, Any, None]) -> None:
        doing = asyncio.create_task(work)
        self._beside.add(doing)
        doing.add_done_callback(self._beside.discard)
