"""What a campaign is: rounds of destruction on a ground, each with its check of every promise.

In each round a few applications start, stop and wait for jobs and take signals, and applications
and whoever else can be killed or cut off on that ground are. Then the record is opened again, as a
user would, and everything that was promised has to be true (`promises.py`). The seed is printed;
`CAMPAIGN_SEED` chooses the same victims again.
"""

import os
import random
import secrets
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from backburner import Backburner
from tests.conftest import REPOSITORY
from tests.faults.application import QUEUE, WIDTH, notes
from tests.faults.grounds import Ground
from tests.faults.promises import PATIENCE_S, Promises
from tests.faults.victims import unique_seconds
from tests.nursery import Forked, nursery
from tests.waiting import pause, wait_until

APPLICATIONS = 3


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
        words.append(self.ground.mix)
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

    def promises(self) -> Promises:
        """What was promised in it."""
        return Promises(self.ground, self.folder, self.seconds)


@dataclass
class Sums:
    """Of all rounds; see `Promises`."""

    orphaned: int
    taken_up: int
    in_vain: int


async def campaign(ground: Ground, rounds: int) -> Sums:
    """So many rounds, one after the other."""
    seed = int(os.environ.get("CAMPAIGN_SEED", secrets.randbelow(10**9)))
    print(f"CAMPAIGN_SEED={seed}")
    count = 0
    kept: list[Promises] = []
    async with Backburner.open(ground.address) as bb:
        await bb.set_queue(QUEUE, WIDTH)
    for number in range(rounds):
        this = Round(ground, number, random.Random(f"{seed} {number}"))
        begin = time.monotonic()
        try:
            this.run()
            ran = time.monotonic() - begin
            kept.append(this.promises())
            count += await kept[-1].check()
            took = time.monotonic() - begin
            print(f"round {number}: {ran:.1f} of {took:.1f} s, killed {', '.join(this.log)}")
        except BaseException:
            print(f"round {number}: killed {', '.join(this.log)}")
            raise
        finally:
            for application in this.applications.values():
                application.kill()
                application.wait()
    sums = Sums(
        orphaned=sum(each.orphaned for each in kept),
        taken_up=sum(each.taken_up for each in kept),
        in_vain=sum(each.in_vain for each in kept),
    )
    print(f"{rounds} rounds, {count} tasks: {sums}")
    async with Backburner.open(ground.address) as bb:
        for each in kept:
            await each.check_they_still_hold(bb)
    ground.check()
    return sums
