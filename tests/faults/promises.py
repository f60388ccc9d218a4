"""What was promised in a round of a campaign, and whether it was kept.

0 lost, 0 told twice, 0 run twice that may not, and no process of what has ended. The jobs have left
marks that say how often each ran; the applications have noted what they were told.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, EventKind, SignalKind, SignalState, State, Task
from backburner.model.worker import ATTEMPTS_MAX
from backburner.runtime.feed import Feed
from backburner.runtime.signals import SignalService
from backburner.work.shown import shown_work
from tests.faults.application import ANSWER, LEASE_S, TALK, Behaviour, answer, behaviour, notes
from tests.faults.functions import FLOOD_LINES
from tests.faults.grounds import Ground
from tests.faults.victims import arguments_of, processes_with
from tests.waiting import wait_until, wait_until_async

PATIENCE_S = 180
"""For a machine that has much else to do; less than until somebody is taken for dead, where nobody
may be."""


Ending = tuple[State, int, int | None, str, str]
"""State, attempt, exit code, error, result: nothing of it changes after the end."""


def ending_of(task: Task) -> Ending:
    """As the record has it now."""
    return task.state, task.record.attempt, task.exit_code, repr(task.error), repr(task.result)


def is_orphan(task: Task) -> bool:
    """Whether it was given up with its machine."""
    return task.error is not None and task.error.kind is ErrorKind.ORPHANED


@dataclass
class Promises:
    """Of one round, whose session is named like its folder."""

    ground: Ground
    folder: Path
    seconds: str
    _endings: dict[str, Ending] = field(default_factory=dict[str, "Ending"])
    orphaned: int = 0
    """How many were given up with their machine."""
    taken_up: int = 0
    """How many were begun again by another one."""
    in_vain: int = 0
    """How many were orphaned whose machine nobody had harmed: it was too busy to be heard of."""

    @property
    def session(self) -> str:
        return self.folder.name

    async def check(self) -> int:
        """Everything that was promised; answers how many tasks there were."""
        self.ground.settle()
        started = notes(self.folder / "started")
        async with Backburner.open(self.ground.address) as bb:
            session = bb.session(self.session)
            tasks = {task.id: task for task in await session.tasks(limit=10_000)}
            lost = {note["id"] for note in started} - set(tasks)
            assert not lost, f"starts returned these ids, and they are gone: {lost}"

            expected = {
                note["id"]: (behaviour(note["behaviour"], self.seconds), note["token"])
                for note in started
            }
            endless = {key for key, (kind, _) in expected.items() if kind.endless}
            unknown = [task for task in tasks.values() if task.id not in expected]
            others = [task for task in tasks.values() if task.id not in endless]
            await asyncio.gather(
                *(tasks[key].stop(force=True) for key in endless),
                # Started by an application that was killed before it could note the id.
                *(self.until_over_or_endless(task) for task in unknown),
                *(self.until_over(task) for task in others),
            )
            self._endings = {task.id: ending_of(task) for task in tasks.values()}
            await asyncio.to_thread(self.ground.reunite)
            stops = {note["id"]: note["state"] for note in notes(self.folder / "stopped")}
            for task in tasks.values():
                await self.check_record(task)
                assert stops.get(task.id, task.state) == task.state, "it changed after its end"
                if task.id in expected:
                    await self.check_ending(task, *expected[task.id])
            orphans = {task.id for task in tasks.values() if is_orphan(task)}
            self.in_vain = len(self.ground.unharmed(orphans))
            gone = self.ground.on_lost_machines()
            await asyncio.gather(
                *(task.stop(force=True) for task in tasks.values() if task.id not in gone)
            )
            assert all(t.record.leftovers == 0 for t in tasks.values() if t.id not in gone)
            wait_until(
                lambda: not processes_with(self.seconds),
                message=lambda: f"a process is left:\n{self.left()}\n{self.ground.said()}",
            )
            await self.check_signals(bb, set(tasks))
            await self.check_they_still_hold(bb)
        return len(tasks)

    def left(self) -> str:
        """What runs that should not."""
        pids = processes_with(self.seconds)
        return "\n".join(f"{pid}: {' '.join(arguments_of(pid))}" for pid in pids)

    async def check_they_still_hold(self, bb: Backburner) -> None:
        """Whoever was fenced off has changed nothing: what has ended is as it was."""
        tasks = await bb.session(self.session).tasks(limit=10_000)
        assert {task.id: ending_of(task) for task in tasks} == self._endings

    async def until_over_or_endless(self, task: Task) -> None:
        work = shown_work(task.record.spec)
        if (
            f"sleep {self.seconds} &" in work or ":sleeps(" in work or "endless_" in work
        ):  # see `behaviour`
            await task.stop(force=True)
        await self.until_over(task)

    async def until_over(self, task: Task) -> None:
        """Wait for its end, and answer what it asks."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await answer(task)
        except TimeoutError:
            await task.refresh()
            events = [event async for event in task.events(follow=False)]
            pytest.fail(f"it does not end: {task.record}\n{events}\n{self.ground.said()}")
        await task.refresh()

    async def check_record(self, task: Task) -> None:
        """Numbered without gaps, ended once."""
        events = [event async for event in task.events(follow=False)]
        assert [event.number for event in events] == list(range(1, len(events) + 1)), task.id
        kinds = Counter(event.kind for event in events)
        assert kinds[EventKind.CREATED] == kinds[EventKind.FINISHED] == 1, (task.id, kinds)
        assert task.state.terminal

    async def check_ending(self, task: Task, kind: Behaviour, token: str) -> None:
        """It ended as what the job did, which it did once."""
        ran_file = self.folder / f"ran-{token}"
        ran = ran_file.read_text().split() if ran_file.exists() else []
        text = (await task.output(raw=True)).text
        seen = (task.id, kind.name, task.record, ran, text)
        attempt = task.record.attempt
        # What had not begun on a machine that died is given to another one with the next attempt:
        # how often it ran is said by its marks alone. It may have been stopped before it could.
        assert len(ran) <= (min(attempt, ATTEMPTS_MAX) if kind.repeatable else kind.runs), seen
        self.taken_up += kind.repeatable and attempt > 1
        if task.state is State.CANCELED:
            assert task.record.stop is not None or task.record.place is None, seen
            return
        if is_orphan(task):
            assert self.ground.deaths, seen
            self.orphaned += 1
            was_last = attempt >= ATTEMPTS_MAX or task.record.stop is not None
            assert was_last or not kind.repeatable, seen
            return
        assert not kind.endless, seen
        if kind.tool is not None:
            assert ran, seen
            assert (task.state, task.result) == (State.SUCCEEDED, self.seconds), seen
            return
        if kind.name == "limited" and not ran:
            ran = ["ran"]  # its time may be over before it can write that
        assert ran == ["ran"] * kind.runs, seen
        if kind.exit_code is None:
            expected = {"crash": ErrorKind.KILLED, "raises": ErrorKind.ERROR}
            assert task.error is not None, seen
            assert task.error.kind is expected.get(kind.name, ErrorKind.TIMEOUT), seen
        else:
            assert task.exit_code == kind.exit_code, seen
        if kind.name == "ask":
            assert text == f"got {ANSWER}\n", seen
        if kind.name == "returns":
            assert task.result == self.seconds, seen
        if kind.name == "floods":
            assert task.result == FLOOD_LINES, seen
        if kind.name == "talk":
            assert text == "".join(f"line {line}\n" for line in range(1, TALK + 1)), seen

    async def check_signals(self, bb: Backburner, ids: set[str]) -> None:
        """One for each end; each acknowledged once; all of them can be had."""
        session = bb.session(self.session)
        told = await session.told(limit=100_000)
        questions = Counter(s.task for s in told if s.record.kind is SignalKind.INPUT_REQUIRED)
        assert set(questions.values()) <= {1}, "asked twice"
        told = [signal for signal in told if signal.task not in questions or ":end" in signal.key]
        wanted = {f"{task}:end" for task in ids}
        assert sorted(signal.key for signal in told) == sorted(wanted)
        delivered = {s.key for s in told if s.record.state is SignalState.DELIVERED}
        acknowledged = Counter(note["key"] for note in notes(self.folder / "acknowledged"))
        twice = [key for key, count in acknowledged.items() if count > 1]
        assert not twice, f"acknowledged more than once: {twice}"
        ends = {key for key in acknowledged if key.endswith(":end")}
        assert ends <= delivered
        bb.inbox = SignalService(bb.store, Feed(bb.store), lease_s=LEASE_S)
        fresh: Counter[str] = Counter()

        async def all_are_told() -> bool:
            async for signal in session.signals(follow=False):
                assert await signal.ack()
                if signal.key.endswith(":end"):
                    fresh[signal.key] += 1
            return delivered | set(fresh) == wanted

        await wait_until_async(all_are_told, message="some are never told")
        assert not delivered & set(fresh), "told again after the acknowledgement"
        assert set(fresh.values()) <= {1}
