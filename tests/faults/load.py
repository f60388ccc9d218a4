"""An application of the campaign: starts jobs, waits for some, stops some, consumes signals.

Run as `python -m tests.faults.load HOME JOURNAL SEED`, and killed at any moment. What it was
promised, it writes down at once and on disk: `started ID KIND` after a start returned, `told KEY`
after an acknowledgement counted.
"""

import asyncio
import os
import random
import sys

from backburner import Backburner, BackburnerError, Session, Task
from tests.waiting import pause_async

JOBS = {
    "quick": "echo ran >>{ran}; echo out; exit 0",
    "failing": "echo ran >>{ran}; echo out; exit 7",
    "slow": "echo ran >>{ran}; echo out; sleep 0.{fraction}; exit 3",
    "stubborn": "trap '' TERM; echo ran >>{ran}; echo out; while :; do sleep 0.1; done",
    "limited": "echo ran >>{ran}; echo out; sleep 600",
    "daemon": "echo ran >>{ran}; echo out; env -i setsid sleep 0.{fraction} & exit 0",
}


class Journal:
    """A file that survives us: each line is on disk before the next thing happens."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, *words: str) -> None:
        os.write(self._fd, (" ".join(words) + "\n").encode())
        os.fsync(self._fd)


async def start(session: Session, journal: Journal, folder: str, choice: random.Random) -> Task:
    kind = choice.choice(list(JOBS))
    name = f"{os.getpid()}-{choice.getrandbits(48):012x}"
    line = JOBS[kind].format(ran=f"{folder}/{name}", fraction=choice.randint(1, 9))
    limit = 1.0 if kind in ("limited", "stubborn") else 60.0
    task = await session.run(line, title=f"{kind} {name}", max_runtime=limit)
    journal.write("started", task.id, kind, name)
    return task


async def work(session: Session, journal: Journal, folder: str, choice: random.Random) -> None:
    """One caller: start, then wait, stop or go on."""
    while True:
        try:
            task = await start(session, journal, folder, choice)
            action = choice.random()
            if action < 0.5:
                await task.wait(timeout=30)
            elif action < 0.75:
                await pause_async(choice.random() / 20, because="a stop may come at any moment")
                stopped = await task.stop(force=choice.random() < 0.5, grace=0.2)
                journal.write("stopped", task.id, stopped.state.value)
        except BackburnerError as error:
            journal.write("refused", error.code)
            await pause_async(0.05, because="a refusal is tried again later")


async def listen(session: Session, journal: Journal) -> None:
    async for signal in session.signals():
        if await signal.ack():
            journal.write("told", signal.key)


async def main(home: str, journal_path: str, folder: str, seed: str) -> None:
    journal = Journal(journal_path)
    async with Backburner.open(home) as bb:
        session = bb.session("campaign")
        callers = [work(session, journal, folder, random.Random(f"{seed}.{n}")) for n in range(4)]
        await asyncio.gather(listen(session, journal), *callers)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
