"""E7: what a run costs the database: whom a change does not concern does not look at it."""

import asyncio
import itertools
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
import pytest

from backburner import Backburner, State, Task
from backburner.store.postgres import queries
from tests import postgres_server
from tests.nodes.conftest import NewWorker
from tests.nodes.machine import machine
from tests.waiting import wait_until_async

RUNS = 40
MOST_A_RUN = 25
"""Statements of the caller, the worker and the engine; it was 57 when everybody looked."""
A_SECOND = 40
"""What a worker and an application ask now and then, whatever runs."""

LOOKS = (
    "node_waiting", "node_queued", "node_answers", "node_messages", "node_inputs", "events_since",
    "event_last", "tasks_to_stop_of_worker", "schedules_due", "schedule_next_due",
    "signals_next_push", "task_next_due", "offers",
)  # fmt: skip
"""What is asked by those who want to know whether something concerns them."""

_ENTRY = re.compile(
    r"LOG:  (?:execute [^:\n]*|statement): (.*?)(?=^\d{4}-\d\d-\d\d |\Z)", re.MULTILINE | re.DOTALL
)


def plain(text: str) -> str:
    """A statement without its values, whoever it is run as."""
    text = text.removeprefix("/* tenant */ ")
    return re.sub(r"\s+", " ", re.sub(r"\$\d+|%\(\w+\)s", "?", text.replace("%%", "%"))).strip()


class Listener:
    """What a database is asked, by its server's own word."""

    def __init__(self, address: str) -> None:
        self._log: Path = postgres_server.server().folder / "log"
        with psycopg.connect(address, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute(f"ALTER DATABASE {name} SET log_statement = 'all'".encode())
        self.begin()

    def begin(self) -> None:
        self._from = self._log.stat().st_size
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def asked(self) -> Counter[str]:
        text = self._log.read_bytes()[self._from :].decode()
        return Counter(plain(found) for found in _ENTRY.findall(text))


async def test_e7_looks_do_not_grow_with_runs(
    address: str, home: Path, new_worker: NewWorker
) -> None:
    listener = Listener(address)
    new_worker("--tools", "tests.nodes.shop")
    async with Backburner.open(address) as bb:
        names = map(str, itertools.count())  # of sessions, each of which may have so many at once

        async def command() -> Task:
            return await bb.session(next(names)).run(["true"])

        async def tool() -> Task:
            return await bb.session(next(names)).spawn("shout", {"text": "hi"})

        async def run(start: Callable[[], Awaitable[Task]]) -> None:
            task = await start()
            await task.wait(120)
            assert task.state is State.SUCCEEDED

        await run(command)
        await run(tool)
        listener.begin()
        for start in (command, tool):
            await asyncio.gather(*(run(start) for _ in range(RUNS // 2)))
        asked, seconds = listener.asked(), listener.seconds
    for name in LOOKS:
        looked = asked[plain(queries.query(name).text.decode())]
        assert looked <= RUNS / 4 + 2 * seconds, f"{name}: {looked} times in {seconds:.1f} s"
    ends = asked[plain(queries.query("tasks_end").text.decode())]
    assert 0 < ends <= RUNS, "what is asked was counted"
    total = sum(asked.values())
    most = MOST_A_RUN * RUNS + A_SECOND * seconds
    assert total <= most, f"{total} statements for {RUNS} runs: {asked.most_common(20)}"


async def test_e7_a_stop_and_an_end_are_heard_of_without_a_look(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody looks by the clock for an hour: no interval of polling is in either."""
    for place in ("worker", "signals", "followup"):
        monkeypatch.setattr(f"backburner.runtime.{place}._LOOK_EVERY_S", 3600.0)
    monkeypatch.setenv("BACKBURNER_HOME", str(tmp_path))
    async with (
        machine(address, tmp_path / "machine", silent_s=3600),
        Backburner.open(address) as bb,
    ):
        began = tmp_path / "began"
        tool = asyncio.Event()

        @bb.tool(background=True)
        async def holds() -> None:
            tool.set()
            await asyncio.Event().wait()

        session = bb.session("chat")
        command = await session.run(f"touch {began}; exec tail -f {began}")
        await wait_until_async(began.exists)
        run = await session.spawn("holds")
        await tool.wait()
        async with Backburner.open(address) as elsewhere:
            told = aiter(elsewhere.session("chat").signals())
            for task in (command, run):
                there = await elsewhere.session("chat").task(task.id)
                asked = asyncio.create_task(there.stop())
                async with asyncio.timeout(60):
                    signal = await anext(told)
                    await asked
                assert (signal.task, there.state) == (task.id, State.CANCELED)
