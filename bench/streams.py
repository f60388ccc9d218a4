"""1,000 readers of events on 100 running tasks: the way of an event to them, and what they cost.

Timed from the moment at which a task has something to say until a reader has the line, in another
process, over a socket each. Ours is a durable commit, is read again from the record, and then goes
to ten readers; the raw limit is a bare FastAPI that hands the same bytes to a queue for each
reader, and writes nothing down. Memory is what the server has grown by with all readers there.
"""

import asyncio
import contextlib
import json
import resource
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from bench.measure import Effort, Row, in_turn, milliseconds, percentile

TASKS = 100
_AT_ONCE = 50
"""Connections that are made at the same time."""
_PATIENCE_S = 120.0


@dataclass(slots=True)
class Crowd:
    """Readers of one server."""

    process: Process
    grown: int
    delays: list[float] = field(default_factory=list[float])
    expected: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def hear(self, events: int, readers: int) -> list[float]:
        """Let the server tell of so many events; how long each took to each of its readers."""
        self.delays.clear()
        self.enough.clear()
        self.expected = events * readers // TASKS
        assert self.process.stdin is not None
        self.process.stdin.write(f"{events}\n".encode())
        async with asyncio.timeout(_PATIENCE_S):
            await self.enough.wait()
        return [*self.delays]


async def run(effort: Effort, folder: Path) -> list[Row]:
    """Two rows."""
    readers = effort.count(1000, quick=200)
    events = effort.count(500, quick=100)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    seen: dict[str, list[float]] = {"ours": [], "bare": []}
    async with crowd("ours", folder, readers) as ours, crowd("bare", folder, readers) as bare:

        async def hear(which: str, them: Crowd) -> float:
            delays = await them.hear(events, readers)
            seen[which] += delays
            return percentile(delays, 0.5)

        pairs = await in_turn(lambda: hear("ours", ours), lambda: hear("bare", bare), effort.rounds)
        row = pairs.row(
            f"event to {readers} readers on {TASKS} tasks",
            "ms",
            scale=1e3,
            notes=[f"{which}: {milliseconds(delays)}" for which, delays in seen.items()],
        )
        sizes = [them.grown / readers / 1024 for them in (ours, bare)]
        memory = Row(
            f"memory of the server for a reader, of {readers}",
            sizes[0],
            "KB",
            raw=sizes[1],
            ratio=sizes[0] / sizes[1],
        )
    return [row, memory]


@contextlib.asynccontextmanager
async def crowd(which: str, folder: Path, readers: int) -> AsyncGenerator[Crowd]:
    """A server, and all of its readers."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.stream_server", which, str(folder / "home"), str(TASKS),
        stdin=PIPE, stdout=PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    reading: list[asyncio.Task[None]] = []
    try:
        said = json.loads(await process.stdout.readline())
        server = psutil.Process(process.pid)
        before = server.memory_info().rss
        them = Crowd(process, 0)
        gate = asyncio.Semaphore(_AT_ONCE)
        ready = [asyncio.Event() for _ in range(readers)]
        for number in range(readers):
            reader = _read(them, said, number % TASKS, gate, ready[number])
            reading.append(asyncio.create_task(reader))
        async with asyncio.timeout(_PATIENCE_S):
            for each in ready:
                await each.wait()
        them.grown = server.memory_info().rss - before
        yield them
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        process.stdin.close()
        await process.wait()


async def _read(
    them: Crowd, said: dict[str, str], task: int, gate: asyncio.Semaphore, ready: asyncio.Event
) -> None:
    """One reader: notes how old each event is when its line is there."""
    place = urlsplit(said["url"])
    async with gate:
        lines, to_server = await asyncio.open_connection(place.hostname, place.port)
        to_server.write(
            f"GET /v1/tasks/bg_{task:016d}/events HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {said['token']}\r\n\r\n".encode()
        )
        if b"200" not in await lines.readline():
            raise RuntimeError("a reader was not let in")
        while await lines.readline() not in (b"\r\n", b""):
            pass
        ready.set()
    with contextlib.closing(to_server):
        while line := await lines.readline():
            if line.startswith(b"data: ") and b'"sent": ' in line:
                now = time.monotonic_ns()
                sent = int(line.partition(b'"sent": ')[2].partition(b",")[0])
                them.delays.append((now - sent) / 1e9)
                if len(them.delays) >= them.expected:
                    them.enough.set()
