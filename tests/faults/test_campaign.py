"""The campaign: kill -9 at random moments under load, then check every promise (A3, X1, X2, E12).

In each round a few applications start, stop and wait for jobs and take signals, and applications,
keeper and guardian are killed, or workers and their database. Then the record is opened again, as a
user would, and everything that was promised has to be true. The seed is printed; `CAMPAIGN_SEED`
chooses the same victims again.
"""

import asyncio
import os
import random
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, EventKind, SignalKind, SignalState, State, Task
from backburner.runtime.feed import Feed
from backburner.runtime.signals import SignalService
from backburner.work.shown import shown_work
from tests.conftest import REPOSITORY
from tests.faults.application import (
    ANSWER,
    LEASE_S,
    QUEUE,
    TALK,
    WIDTH,
    Behaviour,
    answer,
    behaviour,
    notes,
)
from tests.faults.functions import FLOOD_LINES
from tests.faults.grounds import DEAD_AFTER_S, WORKERS, Ground, HomeGround, SharedGround
from tests.faults.victims import processes_with, unique_seconds
from tests.nursery import Forked, nursery
from tests.postgres_server import Server
from tests.waiting import pause, wait_until, wait_until_async

APPLICATIONS = 3
PATIENCE_S = 180
"""For a machine that has much else to do; less than until somebody is taken for dead."""


@dataclass
class Round:
    """One round of the campaign, in a session of its own."""

    ground: Ground
    number: int
    dice: random.Random
    seconds: str = field(default_factory=unique_seconds)
    log: list[str] = field(default_factory=list[str])
    applications: dict[str, Forked] = field(default_factory=dict[str, Forked])

    @property
    def session(self) -> str:
        return f"round{self.number}"

    @property
    def folder(self) -> Path:
        return self.ground.folder / self.session

    # Destruction

    def run(self) -> None:
        """Applications at work, and people dying."""
        self.folder.mkdir()
        for index in range(APPLICATIONS):
            self.start(f"r{self.number}a{index}")
        wait_until(
            lambda: len(notes(self.folder / "started")) >= 2 * APPLICATIONS,
            timeout=PATIENCE_S,
            message="the applications do not get going",
        )
        for _ in range(self.dice.randint(2, 5)):
            pause(self.dice.uniform(0.02, 0.5), because="the moment of a kill is random")
            self.kill_somebody()
        for name, application in self.applications.items():
            if application.poll() is None:
                self.dice.random()  # what follows must not depend on who was quick
                application.kill()
            self.collect(name)

    def start(self, name: str) -> None:
        """Start an application, again where it was killed."""
        words = [self.ground.address, str(self.folder), name, self.seconds, str(self.number)]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.applications[name] = nursery().start(
                "tests.faults.application",
                *words,
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=log.fileno(),
                stderr=log.fileno(),
            )

    def collect(self, name: str) -> None:
        """An application ends well or by our hand."""
        code = self.applications[name].wait()
        said = (self.folder / f"{name}.log").read_text()
        assert code in (0, -9), f"{name} ended with {code}:\n{said}"

    def kill_somebody(self) -> None:
        victims = {"application": 35, **self.ground.victims, "all": 10}
        victim = self.dice.choices(list(victims), list(victims.values()))[0]
        choice = self.dice.random()
        self.log.append(victim)
        if victim in ("application", "all"):
            name = self.dice.choice(sorted(self.applications))
            self.applications[name].kill()
            self.collect(name)
            self.start(name)
        if victim != "application":
            self.ground.kill(victim, choice)

    # Promises

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
            stops = {note["id"]: note["state"] for note in notes(self.folder / "stopped")}
            for task in tasks.values():
                await self.check_record(task)
                assert stops.get(task.id, task.state) == task.state, "it changed after its end"
                if task.id in expected:
                    await self.check_ending(task, *expected[task.id])
            await asyncio.gather(*(task.stop(force=True) for task in tasks.values()))
            assert all(task.record.leftovers == 0 for task in tasks.values())
            wait_until(lambda: not processes_with(self.seconds), message="a process is left")
            await self.check_signals(bb, set(tasks))
        return len(tasks)

    async def until_over_or_endless(self, task: Task) -> None:
        work = shown_work(task.record.spec)
        if f"sleep {self.seconds} &" in work or ":sleeps(" in work:  # see `behaviour`
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
        if task.state is State.CANCELED:
            assert task.record.stop is not None or task.record.place is None, seen
            assert len(ran) <= kind.runs, seen  # it may have been stopped before it ran
            return
        assert not kind.endless, seen
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


async def campaign(ground: Ground, rounds: int) -> None:
    seed = int(os.environ.get("CAMPAIGN_SEED", secrets.randbelow(10**9)))
    print(f"CAMPAIGN_SEED={seed}")
    count = 0
    async with Backburner.open(ground.address) as bb:
        await bb.set_queue(QUEUE, WIDTH)
    for number in range(rounds):
        this = Round(ground, number, random.Random(f"{seed} {number}"))
        begin = time.monotonic()
        try:
            this.run()
            ran = time.monotonic() - begin
            count += await this.check()
            took = time.monotonic() - begin
            print(f"round {number}: {ran:.1f} of {took:.1f} s, killed {', '.join(this.log)}")
        except BaseException:
            print(f"round {number}: killed {', '.join(this.log)}")
            raise
        finally:
            for application in this.applications.values():
                application.kill()
                application.wait()
    print(f"{rounds} rounds, {count} tasks")
    ground.check()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("half", range(2))  # side by side: all at once was the longest test
async def test_promises_hold_through_10_rounds_of_kill_9(home: Path, half: int) -> None:
    await campaign(HomeGround(home), 5)


@pytest.mark.faults
@pytest.mark.timeout(3600)
async def test_promises_hold_through_200_rounds_of_kill_9(home: Path) -> None:
    await campaign(HomeGround(home), 200)


@pytest.fixture
def shared_ground(
    home: Path,
    new_home: Callable[[], Path],
    own_server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SharedGround]:
    """Applications keep copies of output in ``home``."""
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", str(DEAD_AFTER_S))
    ground = SharedGround(own_server, [new_home() for _ in range(WORKERS)])
    yield ground
    ground.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_x10_promises_hold_on_four_machines_through_5_rounds_of_kill_9(
    shared_ground: SharedGround,
) -> None:
    """Applications, workers and the database."""
    await campaign(shared_ground, 5)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("quarter", range(4))
async def test_x10_promises_hold_on_four_machines_through_200_rounds_of_kill_9(
    shared_ground: SharedGround, quarter: int
) -> None:
    await campaign(shared_ground, 50)
