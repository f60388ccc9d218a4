"""Taking what a job says of itself into the record, each thing once.

What was taken and how far the report is with it are one transaction, so that a keeper that comes
after a crash goes on from there. Questions and artifacts are recorded as they are found; of
statuses, progress and results the latest, now and then: a job may report in a tight loop.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.errors import StoreError, UsageError
from backburner.model.events import EventKind
from backburner.model.home import AttemptFolder
from backburner.model.limits import ARTIFACTS_MAX, OPEN_QUESTIONS_MAX, QUESTIONS_MAX, TELLS_MAX
from backburner.model.messages import telling
from backburner.model.task import Task
from backburner.runtime.answers import refuse
from backburner.runtime.scribe import whole
from backburner.store.protocol import Facts, Result, Store
from backburner.work.report import (
    LATEST_COUNTS,
    Addition,
    Advance,
    Ask,
    Item,
    Mistake,
    Outcome,
    Status,
    Telling,
    Withdrawal,
    shown,
)
from backburner.work.reportfile import ReportFile, Said, drain

_LOOK_EVERY_S = 0.1
_AT_ONCE = 2
"""Pieces of the report that are read at one look: 20 MB a second."""

_PACE_S = 0.1
_SLOW_PACE_S = 1.0
_CREDIT = 600.0
"""So many changes may be recorded at the quick pace; one more for each second that passes. A job
that reports in a loop for a day makes a record of 10 MB, not of 100."""

_AGAIN_FIRST_S = 0.05
_AGAIN_LONGEST_S = 5.0


class Reporter:
    """The attendant that listens to one job."""

    def __init__(
        self, store: Store, task: Task, folder: AttemptFolder, report: Callable[[str], None]
    ) -> None:
        self._store = store
        self._task = task
        self._folder = folder
        self._report = report
        self._file = ReportFile(folder.report, task.reported)
        self._bell = asyncio.Event()
        self._latest: dict[type[Item], Said] = {}
        self._mistakes: dict[str, int] = {}
        """By kind: where in the report the first one is."""
        self._asked: set[str] | None = None
        self._added: set[str] = set()
        self._told = 0
        self._credit = _CREDIT
        self._recorded_at = 0.0
        self._spoke = task.reported > 0
        self._has_status = task.detail is not None
        self._astray = False
        self._failures = 0

    # As attendant

    def look(self) -> None:
        if self._file.look():
            self._bell.set()

    async def attend(self) -> None:
        while True:
            await self._until_due()
            try:
                await whole(self._take())
            except StoreError as error:
                await self._wait_for_store(error)
            else:
                self._failures = 0
                await asyncio.sleep(_LOOK_EVERY_S)

    async def conclude(self, ending: Ending) -> Ending:
        while True:
            try:
                return await self._conclude(ending)
            except StoreError as error:
                await self._wait_for_store(error)

    async def _conclude(self, ending: Ending) -> Ending:
        await self._begin_where_the_record_is()
        more = True
        while more:
            await self._note_all(self._file.read(last=True), over=True)
            await asyncio.sleep(0)  # others have their turn
            more = self._file.more
        await self._record_latest()
        if not self._spoke:
            return ending
        task = await self._store.get(self._task.id)
        if task is None or task.result is None or ending.result is not None:
            return ending
        return replace(ending, result=task.result)

    # Taking

    async def _until_due(self) -> None:
        """Until there is something new, or it is time to record the latest."""
        if not self._latest:
            await self._bell.wait()
        else:
            try:
                async with asyncio.timeout(self._wait_s()):
                    await self._bell.wait()
            except TimeoutError:
                pass
        self._bell.clear()

    def _wait_s(self) -> float:
        """How long until the latest may be recorded."""
        now = clock.boot_now() / clock.SECOND
        pace = _PACE_S if self._credit >= 1 else _SLOW_PACE_S
        return max(0.0, self._recorded_at + pace - now)

    async def _take(self) -> None:
        await self._begin_where_the_record_is()
        for _ in range(_AT_ONCE):
            await self._note_all(self._file.read())
            if not self._file.more:
                break
        else:
            self._bell.set()
        if self._latest and self._wait_s() == 0:
            await self._record_latest()
        if not self._latest:
            self._file.free()

    async def _wait_for_store(self, error: StoreError) -> None:
        pause = min(_AGAIN_FIRST_S * 2**self._failures, _AGAIN_LONGEST_S)
        self._failures += 1
        self._report(f"{self._task.id}: its report waits for {pause:.2f} s: {error}")
        await asyncio.sleep(pause)
        self._bell.set()

    async def _begin_where_the_record_is(self) -> None:
        """After a failure nobody knows how much of it was written but the record."""
        if not self._astray:
            return
        task = await self._store.get(self._task.id)
        if task is not None and task.attempt == self._task.attempt:
            self._file.position = task.reported
            noted = self._mistakes.items()
            self._mistakes = {kind: end for kind, end in noted if end <= task.reported}
        self._latest.clear()
        self._added.clear()
        self._asked = None
        self._astray = False

    async def _note_all(self, said: list[Said], *, over: bool = False) -> None:
        for each in said:
            await self._note(each, over=over)

    async def _note(self, said: Said, *, over: bool = False) -> None:
        """Record one thing; ``over`` where nobody can wait for an answer any more."""
        item = said.item
        self._spoke = True
        if isinstance(item, LATEST_COUNTS):
            self._latest.pop(type(item), None)  # so that they stay in the order of the report
            self._latest[type(item)] = said
            return
        if isinstance(item, Mistake) and item.kind in self._mistakes:
            return
        if isinstance(item, Ask) and over:
            return
        if isinstance(item, Addition) and item.name in self._added:
            return
        # In the order of the report: what is recorded says that all before it was.
        await self._record_latest()
        match item:
            case Addition(name):
                await self._add(name, said.end)
            case Ask():
                await self._ask(item, said.end)
            case Telling(text):
                await self._tell(text, said.end)
            case Withdrawal(id):
                await self._withdraw(id, said.end)
            case Mistake(kind, text):
                self._mistakes[kind] = said.end
                # In the timeline, and not in the place of what the job says it is doing.
                detail = None if self._has_status else text
                facts = Facts(detail=detail, data={"detail": text}, reported=said.end)
                await self._write(EventKind.DETAIL, facts)

    @property
    def _which(self) -> tuple[str, int]:
        return self._task.id, self._task.attempt

    async def _write(self, kind: EventKind, facts: Facts) -> None:
        with self._or_astray():
            await self._store.note(*self._which, kind, facts)

    @contextlib.contextmanager
    def _or_astray(self) -> Generator[None]:
        try:
            yield
        except StoreError:
            self._astray = True
            raise
        self._failures = 0

    async def _complain(self, kind: str, text: str, end: int) -> None:
        await self._note(Said(Mistake(kind, f"report: {text}"), end))

    async def _record_latest(self) -> None:
        for kind, said in list(self._latest.items()):
            match said.item:
                case Status(text):
                    self._has_status = True
                    await self._write(EventKind.DETAIL, Facts(detail=text, reported=said.end))
                case Advance(progress):
                    facts = Facts(progress=progress, reported=said.end)
                    await self._write(EventKind.PROGRESS, facts)
                case Outcome(value, size):
                    facts = Facts(result=Result(value), reported=said.end, data={"bytes": size})
                    await self._write(EventKind.RESULT, facts)
                case _:
                    pass
            del self._latest[kind]
            self._spend()

    def _spend(self) -> None:
        now = clock.boot_now() / clock.SECOND
        regained = now - self._recorded_at if self._recorded_at else 0.0
        self._credit = max(0.0, min(_CREDIT, self._credit + regained) - 1)
        self._recorded_at = now

    # Artifacts and questions

    async def _add(self, name: str, end: int) -> None:
        if len(self._added) >= ARTIFACTS_MAX:
            await self._complain("artifacts", f"more than {ARTIFACTS_MAX} artifacts", end)
            return
        try:
            status = os.lstat(f"{self._folder.artifacts}/{name}")
        except OSError:
            status = None
        if status is None or not stat.S_ISREG(status.st_mode):
            await self._complain("artifact", f"artifacts has no file {shown(name)}", end)
            return
        self._added.add(name)
        data = {"name": name, "bytes": status.st_size}
        await self._write(EventKind.ARTIFACT, Facts(data=data, reported=end))

    async def _tell(self, text: str, end: int) -> None:
        if self._told >= TELLS_MAX:
            await self._complain("tell", f"it has told {TELLS_MAX} things, the limit", end)
            return
        # By its place in the report: taken again after a crash of ours, it is the same.
        signal = telling(self._task, text, str(end))
        facts = Facts(data={"text": text}, signal=signal, reported=end)
        await self._write(EventKind.MESSAGE, facts)
        self._told += 1

    async def _ask(self, ask: Ask, end: int) -> None:
        question = ask.id
        asked = await self._known_questions()
        if question in asked:
            return
        problem = _unusable(ask.schema)
        if problem is not None:
            pass
        elif len(asked) >= QUESTIONS_MAX:
            problem = f"it has asked {QUESTIONS_MAX} questions, and that is the limit"
        elif len(asked) >= OPEN_QUESTIONS_MAX:
            open_now = sum(each.open for each in await self._store.questions(self._task.id))
            if open_now >= OPEN_QUESTIONS_MAX:
                problem = f"{open_now} questions are open, and that is the limit"
        if problem is None:
            with self._or_astray():
                await self._store.ask(
                    *self._which, question, ask.text, schema=ask.schema, reported=end
                )
            asked.add(question)
        else:
            refuse(self._folder, question, problem)
            await self._complain("questions", problem, end)

    async def _withdraw(self, question: str, end: int) -> None:
        if question in await self._known_questions():
            with self._or_astray():
                await self._store.withdraw(*self._which, question, reported=end)

    async def _known_questions(self) -> set[str]:
        if self._asked is None:
            questions = await self._store.questions(self._task.id)
            self._asked = {each.id for each in questions if each.attempt == self._task.attempt}
        return self._asked


def _unusable(schema: dict[str, Any] | None) -> str | None:
    """Why no answer could be checked against it."""
    if schema is None:
        return None
    from backburner.work.fitting import check_schema  # slow to load, seldom needed

    try:
        check_schema(schema)
    except UsageError as error:
        return error.message
    return None


class Drain:
    """The attendant of a job whose task has ended: what is left of it may still report."""

    def __init__(self, folder: AttemptFolder) -> None:
        self._path = folder.report

    def look(self) -> None:
        drain(self._path)

    async def attend(self) -> None:
        """There is nothing to do meanwhile."""

    async def conclude(self, ending: Ending) -> Ending:
        return ending
