"""From the end of a job to its signal in the inbox of another process that waits for it.

The job is `date +%s%N`: its last act is to print the time. The consumer, a process of its own,
takes the time when it is given the signal. In between lie the shell's exit code, the end of the
shell, one durable commit by the keeper and one by the consumer, which claims the signal.
The raw limit has the same: a shell that writes the exit code, a pidfd, a durable commit, a
datagram to another process, a durable commit there.
"""

import asyncio
import contextlib
import os
import select
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from backburner import Backburner, Session
from backburner.model.home import Home
from backburner.model.ids import new_id
from bench import bare
from bench.measure import Effort, Row, Target, in_turn, milliseconds, percentile
from bench.peer import Peer, peer

_SCRIPT = '( exec "$@" ); echo $? > "$0"'
_COMMAND = ["date", "+%s%N"]


async def run(effort: Effort, folder: Path) -> list[Row]:
    """p50 and p99."""
    count = effort.count(60)
    times: tuple[list[float], list[float]] = ([], [])
    connection = bare.connect(folder / "bare.db")
    home = folder / "home"
    async with Backburner.open(home) as bb, consumer(str(home)) as signals:
        session = bb.session("bench")
        with peer(folder, folder / "bare.db") as other:

            async def ours() -> float:
                took = [await _signal(home, session, signals) for _ in range(count)]
                times[0].extend(took)
                return percentile(took, 0.5)

            async def raw() -> float:
                took = [_bare_signal(folder, connection, other) for _ in range(count)]
                times[1].extend(took)
                return percentile(took, 0.5)

            pairs = await in_turn(ours, raw, effort.rounds)
    connection.close()
    return [
        pairs.row("job end to signal, p50", "ms", scale=1e3),
        p99_row("job end to signal, p99", times, count),
    ]


def p99_row(
    name: str,
    times: tuple[list[float], list[float]],
    warm_up: int,
    *,
    target: Target | None = None,
) -> Row:
    """p99 over all rounds but the first, of each of the two."""
    ours, raw = (each[warm_up:] for each in times)
    high, low = percentile(ours, 0.99), percentile(raw, 0.99)
    notes = [f"ours {milliseconds(ours)}", f"raw {milliseconds(raw)}"]
    return Row(name, high * 1e3, "ms", raw=low * 1e3, ratio=high / low, target=target, notes=notes)


async def _signal(home: Path, session: Session, signals: asyncio.StreamReader) -> float:
    task = await session.run(_COMMAND)
    task_id, came = (await signals.readline()).decode().split()
    if task_id != task.id:
        raise RuntimeError(f"a signal of {task_id} came, not of {task.id}")
    return (int(came) - _number_in(Path(Home(home).attempt(task.id, 1).log))) / 1e9


def _number_in(file: Path) -> int:
    return int(file.read_text())


def _bare_signal(folder: Path, connection: bare.Database, other: Peer) -> float:
    task_id = new_id()
    values = (task_id, "local", "bench", "shell", "date", "{}", time.time_ns() // 1000)
    connection.execute(bare.INSERT, values)
    code, log = folder / "exit", folder / "log"
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    pid = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", _SCRIPT, str(code), *_COMMAND],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, output, 1)],
        setsid=True,
    )
    process = os.pidfd_open(pid)
    os.close(output)
    select.select([process], [], [])
    if code.read_text() != "0\n":
        raise RuntimeError("the exit code is missing")
    connection.execute(bare.CLAIM, (time.time_ns() // 1000, task_id))
    came = other.ask("claim", task_id)
    os.close(process)
    os.waitpid(pid, 0)
    return (came - _number_in(log)) / 1e9


@contextlib.asynccontextmanager
async def consumer(address: str) -> AsyncGenerator[asyncio.StreamReader]:
    """A process that waits for signals of this home or record, and what it prints."""
    command = (sys.executable, "-m", "bench.consumer", address, "bench")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        await process.stdout.readline()
        yield process.stdout
    finally:
        process.kill()
        await process.wait()
