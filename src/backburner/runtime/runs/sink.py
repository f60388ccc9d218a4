"""What a call in this process says, on its way to the log and to the record."""

import asyncio
import math
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from backburner.model.errors import BackburnerError, LimitReached, TimeIsUp
from backburner.model.events import EventKind
from backburner.model.limits import QUESTION_MAX_CHARS, STATUS_MAX_CHARS, TELLS_MAX
from backburner.model.messages import Message
from backburner.model.questions import question_text
from backburner.model.signals import NewSignal, SignalKind, tell_key
from backburner.model.task import Progress, Task
from backburner.model.telling import said_text
from backburner.runtime.outages import endured
from backburner.store.protocol import Facts
from backburner.work.fitting import check_schema, value_of

if TYPE_CHECKING:
    from backburner.runtime.runs.run import Run
    from backburner.runtime.runs.worker import RunWorker

_PACE_S = 0.1
"""Between two changes of the record: of statuses and progress the latest counts."""


class RunSink:
    """The `Sink` of one run. Its first three may be called from any thread."""

    __slots__ = (
        "_due", "_loop", "_noting", "_receiving", "_run", "_taking", "_told", "_worker",
        "on_progress",
    )  # fmt: skip

    def __init__(self, worker: "RunWorker", run: "Run") -> None:
        self._worker = worker
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._due: asyncio.TimerHandle | None = None
        self._noting: asyncio.Task[None] | None = None
        self._told = 0
        self.on_progress: Callable[[Progress], object] | None = None
        """Who is told how far it is, besides the record; in the event loop."""
        self._receiving: asyncio.Lock | None = None
        self._taking: asyncio.Future[Message | None] | None = None

    def status(self, text: str) -> None:
        """What it is doing now."""
        self._run.status = " ".join(str(text).split())[:STATUS_MAX_CHARS]
        self._note_soon()

    def output(self, stream: str, text: str) -> None:
        """A piece of its output."""
        self._run.log.write("stderr" if stream == "stderr" else "stdout", str(text))

    def progress(
        self, current: float, total: float | None, unit: str | None, label: str | None
    ) -> None:
        """How far it is."""
        try:
            progress = Progress(
                float(current),
                None if total is None else float(total),
                None if unit is None else str(unit)[:STATUS_MAX_CHARS],
                None if label is None else str(label)[:STATUS_MAX_CHARS],
            )
        except (TypeError, ValueError, OverflowError):
            return  # how far it is cannot be shown; it goes on all the same
        if math.isfinite(progress.current) and math.isfinite(progress.total or 0):
            self._run.progress = progress
            if self.on_progress is not None:
                self._loop.call_soon_threadsafe(self.on_progress, progress)
            self._note_soon()

    # Into the record

    def _note_soon(self) -> None:
        if self._run.task is None:
            return  # in memory until there is a record
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._arm()
        else:
            self._loop.call_soon_threadsafe(self._arm)

    def _arm(self) -> None:
        if self._due is None and self._noting is None:
            self._due = self._loop.call_later(_PACE_S, self._begin_note)

    def _begin_note(self) -> None:
        self._due = None
        self._noting = self._loop.create_task(self._note_and_rest())

    async def _note_and_rest(self) -> None:
        try:
            await self.note()
        except BackburnerError as error:
            self._worker.report(f"{self._run.new.id}: its status is not on record: {error}")
        finally:
            self._noting = None
        if self._run.status is not None or self._run.progress is not None:
            self._arm()

    async def note(self) -> None:
        """Record the latest status and progress now."""
        run, task = self._run, self._run.task
        if task is None:
            return
        status, progress = run.status, run.progress
        run.status = run.progress = None
        store = self._worker.store
        if progress is not None:
            facts = Facts(progress=progress, detail=status)
            await store.note(task.id, task.attempt, EventKind.PROGRESS, facts)
        elif status is not None:
            await store.note(task.id, task.attempt, EventKind.DETAIL, Facts(detail=status))

    @property
    def has_said_all(self) -> bool:
        """Whether nothing of it is still to be recorded."""
        run = self._run
        return self._due is self._noting is run.status is run.progress is None

    async def finish(self) -> None:
        """The call is over: what it said last goes into the record before its end."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._noting is not None:
            await asyncio.wait([self._noting])
        await self.note()

    # To and fro

    async def ask(
        self, question: str, schema: Mapping[str, Any] | None, timeout: float | None
    ) -> Any:
        """Ask the session and wait for its answer."""
        text = question_text(question)
        task = await self._worker.recorded(self._run)
        store = self._worker.store
        number = f"q{secrets.token_hex(6)}"
        form = None if schema is None else dict(schema)
        if form is not None:
            check_schema(form)
        try:
            await store.ask(task.id, task.attempt, number, text, schema=form)
            async with asyncio.timeout(timeout):
                answer = await self._answer_to(task, number)
        except TimeoutError:
            await store.withdraw(task.id, task.attempt, number)
            late = await self._given(task, number)  # at the last moment
            if late is None:
                raise TimeIsUp(f"nobody answered within {timeout:g} s") from None
            answer = late
        except asyncio.CancelledError:
            await asyncio.shield(store.withdraw(task.id, task.attempt, number))
            raise
        await store.handed_on(task.id, task.attempt, number)
        return answer if form is None else value_of(answer, form)

    async def _answer_to(self, task: Task, number: str) -> str:
        async with self._worker.feed.of_task(task.id) as bell:
            while True:
                bell.clear()
                if (answer := await endured(lambda: self._given(task, number))) is not None:
                    return answer
                await bell.wait()

    async def _given(self, task: Task, number: str) -> str | None:
        found = [each for each in await self._worker.store.questions(task.id) if each.id == number]
        return found[0].answer if found else None

    async def receive(self, timeout: float | None) -> str:
        """The next message to this task."""
        task = await self._worker.recorded(self._run)
        try:
            async with asyncio.timeout(timeout), self._worker.feed.of_task(task.id) as bell:
                while True:
                    bell.clear()
                    message = await endured(lambda: self._take_message(task))
                    if message is not None:
                        return message.text
                    await bell.wait()
        except TimeoutError:
            raise TimeIsUp(f"no message came within {timeout:g} s") from None

    async def _take_message(self, task: Task) -> Message | None:
        """Whoever gives up while it is being taken leaves it to the next one who asks."""
        if self._receiving is None:  # seldom needed, and most runs are short
            self._receiving = asyncio.Lock()
        async with self._receiving:
            if self._taking is None:
                store = self._worker.store
                self._taking = asyncio.ensure_future(store.next_message(task.id, task.attempt))
            try:
                message = await asyncio.shield(self._taking)
            except BackburnerError:
                self._taking = None
                raise
            self._taking = None
            return message

    async def tell(self, text: str) -> None:
        """Tell the session something while the work goes on."""
        if self._told >= TELLS_MAX:
            raise LimitReached(f"it has told {TELLS_MAX} things, the limit")
        self._told += 1
        task = await self._worker.recorded(self._run)
        said = str(text)[:QUESTION_MAX_CHARS]
        signal = NewSignal(
            SignalKind.MESSAGE,
            tell_key(task.id, task.attempt, secrets.token_hex(8)),
            said_text(task.title, task.id, said),
            {"text": said},
        )
        await self._worker.store.note(
            task.id, task.attempt, EventKind.MESSAGE, Facts(data={"text": said}, signal=signal)
        )
