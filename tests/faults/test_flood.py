"""X3, E6: a job that prints without end costs little disk, keeps head and tail, and never waits."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from backburner import Backburner, Settings, State, Task
from tests.faults.apart import run_apart
from tests.faults.victims import (
    kill_all_of_ours,
    kill_keeper,
    processes_with,
    wait_for_keeper,
)
from tests.waiting import pause_async, wait_until_async

MB = 1_000_000
PEAK = 100 * MB
"""Tens of MB; what a job can print in the moment until the keeper looks."""
AFTER = 1.4 * MB
"""Head and tail, and the rest of the blocks in which they end."""

HEAD = Settings().log_head
TAIL = Settings().log_tail

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quick_end(home: Path) -> Iterator[None]:
    """Keeper and guardian would notice within a second that their home is gone."""
    yield
    kill_all_of_ours(home)


@pytest.mark.parametrize(
    ("line", "code", "least"),
    [
        ("timeout 2 yes", 124, 100 * MB),
        ("dd if=/dev/zero bs=64k count=16000 status=none", 0, 16000 * 65536),
    ],
)
async def test_x3_a_flood_costs_little_disk(home: Path, line: str, code: int, least: int) -> None:
    """X3: tens of MB at the peak, about 1.3 MB after; the job runs as if nobody looked."""
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(line)
        peak = await peak_until_end(task)
        assert task.exit_code == code
        output = task.document()["output"]
        assert output["bytes"] >= least
        assert peak < PEAK
        assert used(task) < AFTER
        assert output["bytes"] - output["dropped_bytes"] < AFTER


async def test_e6_head_and_tail_are_kept_to_the_line(home: Path) -> None:
    """E6, A7: the first 256 KiB and the last 1 MiB, and a note of what is left out."""
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").run("seq 1 20000000; exit 3")).wait(timeout=60)
        assert task.exit_code == 3
        chunk = await task.output(max_chars=None, raw=True)
    head, note, tail = parts_of(chunk.text)
    check_head(head)
    assert tail == [str(number) for number in range(20_000_001 - len(tail), 20_000_001)]
    assert HEAD - 10 < len("\n".join(head)) < HEAD + 8192
    assert TAIL - 10 < len("\n".join(tail)) < TAIL + 8192
    assert chunk.total == sum(9 * 10 ** (n - 1) * (n + 1) for n in range(1, 8)) + 10_000_001 * 9
    assert chunk.dropped == task.record.dropped_bytes > 0.99 * chunk.total
    assert len(note) == 1


async def test_x3_standard_error_apart_is_bounded_too(home: Path) -> None:
    """X3, E6: each stream has its own head and tail."""
    line = "echo out-begin; echo err-begin >&2; timeout 1 yes o & timeout 1 yes e >&2; wait;"
    line += "echo out-end; echo err-end >&2; exit 5"
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(line, separate_stderr=True)
        peak = await peak_until_end(task)
        assert task.exit_code == 5
        chunk = await task.output(max_chars=None, raw=True)
    assert peak < 2 * PEAK
    assert used(task) < 2 * AFTER
    assert chunk.stderr_text is not None
    for text, name, letter in ((chunk.text, "out", "o"), (chunk.stderr_text, "err", "e")):
        assert text.startswith(f"{name}-begin\n{letter}\n")
        assert text.endswith(f"{letter}\n{name}-end\n")
        others = set(text.splitlines()) - {f"{name}-begin", f"{name}-end", letter}
        assert len(others) == 1, "one note of what is left out, and not a byte of the other stream"


async def test_x3_a_job_never_waits_for_the_keeper(home: Path) -> None:
    """X3, X2: its output goes to a file, and not through us: it prints while the keeper stands."""
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run("seq 1 1000000000")
        await wait_until_async(lambda: written(task) > 10 * MB)
        keeper = wait_for_keeper(home)
        os.kill(keeper, signal.SIGSTOP)
        try:
            before = written(task)
            await wait_until_async(lambda: written(task) > before + 20 * MB)
        finally:
            os.kill(keeper, signal.SIGCONT)
        await wait_until_async(lambda: used(task) < 10 * MB)
        await task.stop()
        assert task.state is State.CANCELED
        assert used(task) < AFTER


async def test_x3_a_daemon_that_floods_stays_bounded(home: Path) -> None:
    """X3, X2: left behind by a job that ended, and after a new keeper took over."""
    number = f"10{os.getpid():07d}000000"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        task = await (await session.run(f"setsid seq 1 {number} & exit 0")).wait(timeout=30)
        assert (task.state, task.record.leftovers) == (State.SUCCEEDED, 1)
        await wait_until_async(lambda: written(task) > 50 * MB)
        assert await peak_while_growing(task, 100 * MB) < PEAK

        wait_for_keeper(home, other_than=kill_keeper(home))
        assert processes_with(number), "it does not die with the keeper"
        await wait_until_async(lambda: used(task) < 10 * MB, message="nobody bounds it any more")
        assert await peak_while_growing(task, 100 * MB) < PEAK

        await task.stop()
        assert not processes_with(number)
        assert (task.state, task.record.leftovers) == (State.SUCCEEDED, 0)
        assert used(task) < AFTER
        assert task.record.output_bytes == written(task)
        chunk = await task.output(max_chars=None, raw=True)
        head, note, tail = parts_of(chunk.text)
        check_head(head)
        assert [int(line) for line in tail[:-1]] == list(range(int(tail[0]), int(tail[-2]) + 1))
        assert len(note) == 1


def test_x3_a_flood_is_bounded_without_inotify_watches() -> None:
    """X3: a limit that editors and file watchers use up."""
    run_apart("faults/on_few_watches.py", own_user=True)


def files_of(task: Task) -> list[os.stat_result]:
    """The files of the attempt; none before its start."""
    folder = Path(task.document()["paths"]["dir"])
    return [path.stat() for path in folder.glob("*.log")]


def used(task: Task) -> int:
    """Bytes that its logs take on the disk; a hole takes none."""
    return sum(status.st_blocks * 512 for status in files_of(task))


def written(task: Task) -> int:
    """Bytes that the job has written."""
    return sum(status.st_size for status in files_of(task))


async def peak_until_end(task: Task) -> int:
    """The most that its logs took until the job ended."""
    peak = 0
    while not (await task.refresh()).state.terminal:
        peak = max(peak, used(task))
        await pause_async(0.005, because="the size of the log is looked at again and again")
    return peak


async def peak_while_growing(task: Task, size: int) -> int:
    """The most that its logs took while the job wrote so much."""
    peak = 0
    goal = written(task) + size
    while written(task) < goal:
        peak = max(peak, used(task))
        await pause_async(0.005, because="the size of the log is looked at again and again")
    return peak


def check_head(lines: list[str]) -> None:
    """The numbers from 1 on; the last one may be cut."""
    assert lines[:-1] == [str(number) for number in range(1, len(lines))]
    assert str(len(lines)).startswith(lines[-1])


def parts_of(text: str) -> tuple[list[str], list[str], list[str]]:
    """Lines of a log of numbers: before the note of what is left out, the note, and after it."""
    lines = text.splitlines()
    note = [at for at, line in enumerate(lines) if not line.isdigit()]
    return lines[: note[0]], lines[note[0] : note[-1] + 1], lines[note[-1] + 1 :]
