"""`task.stop()` of a polite job (`sleep`, which ends at the first TERM), from call to return.

In between lie a durable commit of the request, the keeper's look at all processes of the machine
for those of the job, TERM, the end of the job, the proof that nothing is left, a durable commit
of the ending and the way back. The raw limit: a durable commit, a datagram to another process,
TERM to a process group, a pidfd, a durable commit there, a datagram back.
"""

import os
import time
from pathlib import Path

from backburner import Backburner, EventKind, Session, State, Task
from backburner.model.ids import new_id
from bench import bare
from bench.ending import p99_row
from bench.measure import Effort, Row, in_turn, milliseconds, percentile
from bench.peer import Peer, peer
from bench.waiting import until

_SCRIPT = 'trap : TERM; ( exec "$@" )'
_COMMAND = ["sleep", "600"]
_BEGIN_S = 0.01
"""Between looks whether the shell has become `sleep`."""


async def run(effort: Effort, folder: Path) -> list[Row]:
    """p50 and p99, and p99 of stops that come before the shell has become the job."""
    count = effort.count(60)
    times: tuple[list[float], list[float]] = ([], [])
    connection = bare.connect(folder / "bare.db")
    async with Backburner.open(folder / "home") as bb:
        session = bb.session("bench")
        with peer(folder, folder / "bare.db") as other:

            async def ours() -> float:
                took = [await _stop(session) for _ in range(count)]
                times[0].extend(took)
                return percentile(took, 0.5)

            async def raw() -> float:
                took = [_bare_stop(connection, other) for _ in range(count)]
                times[1].extend(took)
                return percentile(took, 0.5)

            pairs = await in_turn(ours, raw, effort.rounds)
        early = [await _stop(session, early=True) for _ in range(count)]
    connection.close()
    notes = [f"{_processes()} processes on this machine now"]
    return [
        pairs.row("stop of a polite job, p50", "ms", scale=1e3, notes=notes),
        p99_row("stop of a polite job, p99", times, count),
        Row(
            "stop right after the start, p99",
            percentile(early, 0.99) * 1e3,
            "ms",
            notes=[milliseconds(early)],
        ),
    ]


async def _stop(session: Session, *, early: bool = False) -> float:
    task = await session.run(_COMMAND)
    if early:
        await _until_started(task)
    else:
        await until(lambda: _sleeps(task), what="the job sleeps", nap=_BEGIN_S)
    began = time.perf_counter()
    await task.stop()
    took = time.perf_counter() - began
    if task.state is not State.CANCELED:
        raise RuntimeError(f"{task} was not stopped")
    return took


async def _until_started(task: Task) -> None:
    async for event in task.events():
        if event.kind is EventKind.STARTED:
            return


async def _sleeps(task: Task) -> bool:
    """Whether the shell that stands before the job has started it."""
    pid = (await task.refresh()).record.pid
    return pid is not None and _command_of_child(pid) == "sleep"


def _command_of_child(pid: int) -> str:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return Path(f"/proc/{children[0]}/comm").read_text().strip() if children else ""
    except OSError:
        return ""


def _bare_stop(connection: bare.Database, other: Peer) -> float:
    task_id = new_id()
    values = (task_id, "local", "bench", "shell", "sleep", "{}", time.time_ns() // 1000)
    connection.execute(bare.INSERT, values)
    command = ["sh", "-c", _SCRIPT, "sh", *_COMMAND]
    null = os.open(os.devnull, os.O_WRONLY)
    silent = [(os.POSIX_SPAWN_DUP2, null, 2)]  # a shell says what its child died of
    pid = os.posix_spawn("/bin/sh", command, os.environ, file_actions=silent, setsid=True)
    os.close(null)
    while _command_of_child(pid) != "sleep":
        time.sleep(_BEGIN_S)
    began = time.perf_counter()
    connection.execute(bare.CLAIM, (time.time_ns() // 1000, task_id))
    other.ask("end", task_id, str(pid))
    took = time.perf_counter() - began
    os.waitpid(pid, 0)
    return took


def _processes() -> int:
    return sum(name.isdigit() for name in os.listdir("/proc"))
