"""One process of a crowd on one record: it starts, claims, ends, stops and hears of tasks at once.

Run as `python -m tests.store.conformance.crowd ENGINE ADDRESS NUMBER ROUNDS`. It says `ready`,
waits for a line, and writes what it was told, one JSON list a line; `test_crowd` reads all of them
against each other.
"""

import asyncio
import json
import random
import sys
from typing import Any

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.errors import LimitReached
from backburner.model.states import ErrorKind, State
from backburner.model.task import Place, Task
from backburner.store.protocol import Scope, Store
from tests.store.conformance.engines import ENGINES
from tests.store.conformance.making import new_task

OWNER = Scope("ada")
TIGHT = Scope("ada", "tight")
TIGHT_LIMIT = 5
PLENTY = 1_000_000

ENDINGS = [
    Ending.exited(0),
    Ending.exited(3),
    Ending.failed(ErrorKind.KILLED, "SIGKILL"),
    Ending.canceled(),
]


class Member:
    """What one process does, and what it was told."""

    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._number = number
        self._name = f"member-{number}"
        self._chance = random.Random(number)
        self._seen: list[str] = []
        self.journal: list[list[Any]] = []

    def _write(self, *entry: Any) -> None:
        self.journal.append(list(entry))

    async def round(self, number: int) -> None:
        """Everything at once, as in a busy application."""
        await asyncio.gather(
            self._start(f"own-{self._number}-{number}", Scope("ada", f"s{self._number % 4}")),
            self._start(f"shared-{number}", Scope("ada", "shared")),
            self._start_within_limit(f"tight-{self._number}-{number}"),
            self._work(),
            self._stop_one(),
            self._listen(),
        )

    async def _start(self, task_id: str, scope: Scope) -> None:
        task = await self._store.create(new_task(task_id, scope=scope), limit=PLENTY)
        self._seen.append(task.id)
        self._write("created", task.id, task.seq)

    async def _start_within_limit(self, task_id: str) -> None:
        try:
            task = await self._store.create(new_task(task_id, scope=TIGHT), limit=TIGHT_LIMIT)
        except LimitReached:
            self._write("refused", task_id)
        else:
            self._write("created", task.id, task.seq)

    async def _work(self) -> None:
        waiting = await self._store.waiting_for_keeper()
        queued = [task for task in waiting if task.state is State.QUEUED]
        chosen = self._chance.sample(queued, min(4, len(queued)))
        await asyncio.gather(*(self._carry_out(task) for task in chosen))

    async def _carry_out(self, task: Task) -> None:
        place = Place("this boot", clock.boot_now(), self._number)
        if await self._store.claim(task.id, task.attempt, place) is None:
            return  # another one was quicker
        self._write("claimed", task.id, task.attempt)
        if self._chance.random() < 0.25:
            again = await self._store.requeue(task.id, task.attempt, "not now")
            late = await self._store.finish(task.id, task.attempt, ENDINGS[0])
            self._write("requeued", task.id, task.attempt, again is not None, late is None)
            return
        endings = self._chance.sample(ENDINGS, 2)
        ended = await asyncio.gather(
            *(self._store.finish(task.id, task.attempt, ending) for ending in endings)
        )
        self._write("ended", task.id, task.attempt, [done.state for done in ended if done])

    async def _stop_one(self) -> None:
        if self._seen:
            task_id = self._chance.choice(self._seen)
            task = await self._store.request_stop(task_id, OWNER, self._chance.choice([5.0, 0.0]))
            self._write("stopped", task_id, None if task is None else task.state)

    async def _listen(self) -> None:
        signals = await self._store.claim_signals(OWNER, consumer=self._name, limit=6, lease_s=3600)
        for signal in signals:
            self._write("heard", signal.key, signal.tries)
            chance = self._chance.random()
            if chance < 0.1:
                ours = await self._store.delivery_failed(signal.key, "no answer", self._store.now())
            elif chance < 0.9:
                ours = await self._store.acknowledge([signal.key], OWNER) == 1
                self._write("told", signal.key)
            else:
                self._write("gave back", signal.key, signal.tries)  # below
                continue
            if not ours:
                self._write("taken away", signal.key)
        await self._store.release_signals(self._name)


async def main(engine: str, address: str, number: int, rounds: int) -> None:
    store = await ENGINES[engine].open(address)
    try:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        member = Member(store, number)
        for each in range(rounds):
            await member.round(each)
    finally:
        await store.close()
    for entry in member.journal:
        print(json.dumps(entry))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
