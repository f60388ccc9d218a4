"""The campaign: keeper, guardian and applications are killed -9 at random moments under load.

After each round with fresh victims the load goes on; at the end everything that was promised is
checked (X1, X2, A3, A5, E10): no task lost, none run twice, none told twice, nothing left.
"""

import contextlib
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from backburner import Backburner, EventKind, Session, State, Task
from tests.conftest import REPOSITORY
from tests.faults.load import JOBS
from tests.faults.victims import guardians_of, keepers_of
from tests.waiting import pause, wait_until_async

APPLICATIONS = 2


class Applications:
    """The load: processes that are started again when they were killed."""

    def __init__(self, home: Path, folder: Path, seed: int) -> None:
        self._home = home
        self._folder = folder
        self._seed = seed
        self._count = 0
        self.running: list[subprocess.Popen[bytes]] = []
        self.journals: list[Path] = []
        (folder / "ran").mkdir()

    def top_up(self) -> None:
        self.running = [process for process in self.running if process.poll() is None]
        while len(self.running) < APPLICATIONS:
            self._count += 1
            journal = self._folder / f"journal.{self._count}"
            self.journals.append(journal)
            arguments = [self._home, journal, self._folder / "ran", f"{self._seed}.{self._count}"]
            errors = self._folder / f"errors.{self._count}"
            with errors.open("wb") as file:
                self.running.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "tests.faults.load", *map(str, arguments)],
                        cwd=REPOSITORY,
                        stdout=subprocess.DEVNULL,
                        stderr=file,
                    )
                )

    def kill_all(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()

    def lines(self, word: str) -> list[list[str]]:
        """What the applications wrote down under this word; a last line may be cut short."""
        found: list[list[str]] = []
        for journal in self.journals:
            if journal.exists():
                for line in journal.read_text().splitlines():
                    words = line.split(" ")
                    if words[0] == word:
                        found.append(words[1:])
        return found

    def complaints(self) -> list[str]:
        """What the applications said on standard error: they must never have a reason to."""
        return [text for path in self._folder.glob("errors.*") if (text := path.read_text())]


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(300)]),
        pytest.param(200, marks=[pytest.mark.faults, pytest.mark.timeout(2400)]),
    ],
)
async def test_no_kill_loses_doubles_or_hides_anything(
    rounds: int, home: Path, tmp_path: Path
) -> None:
    """X1, X2, A3: kill -9 of any process of ours, again and again, under load."""
    seed = int(os.environ.get("CAMPAIGN_SEED", random.SystemRandom().getrandbits(32)))
    print(f"CAMPAIGN_SEED={seed}")
    choice = random.Random(seed)
    folder = tmp_path / "campaign"
    folder.mkdir()
    applications = Applications(home, folder, seed)
    killed: Counter[str] = Counter()
    try:
        for _ in range(rounds):
            applications.top_up()
            pause(choice.uniform(0.05, 1.2), because="the moment of the kill is the subject")
            killed += kill_some(home, applications, choice)
    finally:
        applications.kill_all()
    print(f"killed: {dict(killed)}, started: {len(applications.lines('started'))}")

    assert not applications.complaints()
    async with Backburner.open(home) as bb:
        session = bb.session("campaign")
        tasks = await everything_ended(session)
        await check_promises(session, tasks, applications, folder / "ran")
    assert len(tasks) > rounds, "the load was hardly a load"


def kill_some(home: Path, applications: Applications, choice: random.Random) -> Counter[str]:
    """One to three victims; now and then keeper and guardian at once."""
    groups = {
        "keeper": keepers_of(home),
        "guardian": guardians_of(home),
        "application": [process.pid for process in applications.running],
    }
    names = choice.sample(sorted(groups), k=choice.randint(1, 3))
    killed: Counter[str] = Counter()
    for name in names:
        for pid in groups[name] if name != "application" else groups[name][:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
                killed[name] += 1
    return killed


async def everything_ended(session: Session) -> list[Task]:
    """All tasks, once each of them has ended and has nothing left behind."""

    async def all_tasks() -> list[Task]:
        return await session.tasks(limit=100_000)

    async def none_active() -> bool:
        return all(task.state.terminal and not task.record.leftovers for task in await all_tasks())

    await wait_until_async(none_active, timeout=120, message="tasks that do not end")
    return await all_tasks()


async def check_promises(
    session: Session, tasks: list[Task], applications: Applications, ran: Path
) -> None:
    by_id = {task.id: task for task in tasks}
    started = {words[0]: (words[1], words[2]) for words in applications.lines("started")}

    lost = [task_id for task_id in started if task_id not in by_id]
    assert not lost, f"a start returned {lost}, and there is no such task"

    stopped = {words[0]: words[1] for words in applications.lines("stopped")}
    for task_id, state in stopped.items():
        assert by_id[task_id].state.value == state, "a task changed after its end"

    for task in tasks:
        kind, name = task.record.title.split(" ")
        runs = (ran / name).read_text().count("ran\n") if (ran / name).exists() else 0
        assert runs <= 1, f"{task.id} ({kind}) ran {runs} times"
        assert fits(task, kind, runs), f"{task.record} does not fit {kind}, which ran {runs} times"
        if runs and task.state is State.SUCCEEDED:
            assert (await task.output()).text == "out\n"
        events = [event async for event in task.events(follow=False)]
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert [event.kind for event in events].count(EventKind.FINISHED) == 1

    told = Counter(signal.task for signal in await session.told(limit=1_000_000))
    assert told == Counter(by_id.keys()), "not exactly one signal for each task"
    acknowledged = Counter(words[0] for words in applications.lines("told"))
    assert not [key for key, times in acknowledged.items() if times > 1], "told twice"


ENDINGS: dict[str, set[tuple[str, str | None, int | None]]] = {
    "quick": {("succeeded", None, 0)},
    "failing": {("failed", "exit", 7)},
    "slow": {("failed", "exit", 3)},
    "stubborn": {("failed", "timeout", None)},
    "limited": {("failed", "timeout", None)},
    "daemon": {("succeeded", None, 0)},
}
assert ENDINGS.keys() == JOBS.keys()


def fits(task: Task, kind: str, runs: int) -> bool:
    """Whether a job of this kind can have ended so: by itself, or stopped on request."""
    error = task.error.kind.value if task.error else None
    if task.state is State.CANCELED:
        return task.record.stop is not None or runs == 0
    return runs == 1 and (task.state.value, error, task.exit_code) in ENDINGS[kind]
