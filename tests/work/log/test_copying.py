"""X3, E6 where holes cannot be punched: the log is copied and cut, with kill -9 at any moment."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backburner.work.log import moved
from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds
from backburner.work.log.read import read_output
from backburner.work.log.stream import StreamRead, read_stream
from tests.waiting import wait_until
from tests.work.log.jobs import on_disk, running_job, seq_bytes

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

KIB = 1024
SMALL = LogBounds(head=8 * KIB, tail=32 * KIB, slack=16 * KIB)

DEADLY = """
import os, signal, sys

from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds

path, step, final = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "final"

calls = 0


def deadly(name):
    real = getattr(os, name)

    def call(*arguments):
        global calls
        calls += 1
        if calls == step:
            if name == "write":  # half of it
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)

    setattr(os, name, call)


for name in ("rename", "ftruncate", "pwrite", "pread", "write", "unlink", "fstat"):
    deadly(name)
LogBounder(path, LogBounds(8192, 32768, 16384), copying=True).bound(final=final)
"""

BOUNDING = """
import contextlib
import sys
from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds

bounder = LogBounder(sys.argv[1], LogBounds(8192, 32768, 16384), copying=True)
while True:
    with contextlib.suppress(BlockingIOError):  # somebody reads; who calls it comes again
        bounder.bound()
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "output.log"


def append(log: Path, data: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)


def assert_true(read: StreamRead, total: int) -> None:
    """Every byte is where `seq` wrote it, and what is not there is said to be dropped."""
    assert read.total == read.end == total
    for segment in read.segments:
        assert segment.data == seq_bytes(segment.offset, segment.end)
    given = sum(len(segment.data) for segment in read.segments)
    assert given + read.dropped == total - read.start
    assert read.dropped == sum(gap.dropped for gap in read.gaps)


def bound(log: Path, *, final: bool = False) -> int:
    return LogBounder(log, SMALL, copying=True).bound(final=final).dropped


def test_e6_head_and_tail_are_kept(log: Path) -> None:
    total = 0
    dropped = 0
    for step in (30_000, 40_000, 1_000, 70_000, 100_000, 5_000, 300_000):
        append(log, seq_bytes(total, total + step))
        total += step
        assert_true(read_stream(log), total)
        dropped = bound(log)
        read = read_stream(log)
        assert_true(read, total)
        assert read.dropped == dropped
        assert read.segments[0].data[: SMALL.head] == seq_bytes(0, min(total, SMALL.head))
        assert total - read.segments[-1].offset >= min(SMALL.tail, total)
        assert on_disk(log) < SMALL.most + SMALL.tail + 8 * 4096
    assert dropped > 400_000


@pytest.mark.parametrize("more", [0, 1_000, 20_000, 40_000])
def test_x3_the_final_trim_leaves_head_and_tail(log: Path, more: int) -> None:
    append(log, seq_bytes(0, 200_000))
    bound(log)
    total = 200_000 + more
    append(log, seq_bytes(200_000, total))
    dropped = bound(log, final=True)
    assert 0 <= total - dropped - SMALL.head - SMALL.tail <= 2 * 4096
    assert_true(read_stream(log), total)
    assert bound(log, final=True) == dropped
    names = {path.name.removeprefix("output.log") for path in log.parent.iterdir()}
    assert len(names) == 5
    assert {"", ".head", ".map", ".lock"} < names  # and one tail
    assert all(path.stat().st_mode & 0o077 == 0 for path in log.parent.glob("*.log.*"))


def test_e6_the_text_says_how_it_was_shortened(log: Path) -> None:
    append(log, seq_bytes(0, 200_000))
    bound(log)
    for limit in (None, 4_000):
        text = read_output(log, finished=True, max_chars=limit).text
        assert "159.0 kB of output dropped" in text
        assert "(the log was copied and cut: a few lines more may be missing)" in text


def test_x3_a_cursor_holds_while_the_log_is_cut(log: Path) -> None:
    """E6: what was not dropped is given once, and at its place."""
    total, cursor, given = 0, None, ""
    for _ in range(40):
        append(log, seq_bytes(total, total + 20_000))
        total += 20_000
        chunk = read_output(log, since=cursor, finished=False, raw=True, max_chars=None)
        assert chunk.dropped == 0
        assert chunk.total == total
        cursor = chunk.cursor
        given += chunk.text
        bound(log)
    assert given.encode() == seq_bytes(0, total)


@pytest.mark.parametrize("mode", ["first", "again", "final"])
def test_x2_kill_9_at_every_step_of_a_move_loses_nothing(log: Path, mode: str) -> None:
    """Also X3: not even before someone repairs what was left."""
    steps = 0
    killed = True
    while killed:
        steps += 1
        for path in log.parent.iterdir():
            path.unlink()
        total = 0
        if mode != "first":
            append(log, seq_bytes(0, 100_000))
            bound(log)
            total = 100_000
        append(log, seq_bytes(total, total + 100_000))
        total += 100_000
        cursor = read_output(log, finished=False).cursor
        before = read_stream(log)

        arguments = [str(log), str(steps), mode]
        done = subprocess.run([sys.executable, "-c", DEADLY, *arguments], check=False)
        assert done.returncode in {0, -signal.SIGKILL}
        killed = done.returncode != 0

        after = read_stream(log)
        assert_true(after, total)
        assert after.dropped >= before.dropped
        assert after.segments[0].data[: SMALL.head] == seq_bytes(0, SMALL.head)
        assert total - after.segments[-1].offset >= SMALL.tail

        append(log, b"more\n" * 10)  # the job goes on before and after the repair
        dropped = bound(log, final=True)
        append(log, b"end\n")
        read = read_stream(log)
        assert read.total == total + 54
        assert read.dropped == dropped
        text = read_output(log, since=cursor, finished=True, raw=True).text
        assert text == "more\n" * 10 + "end\n"
    assert steps > 10


@pytest.mark.slow
def test_x2_kill_9_while_the_job_writes_and_readers_read(log: Path) -> None:
    """X3: readers see the job's own characters only, and positions never go back."""
    position = 0

    def look() -> None:
        nonlocal position
        try:
            read = read_stream(log, bounds=SMALL)
        except BlockingIOError:  # two loops without a pause, one against the other
            return
        for segment in read.segments:
            assert not segment.data.strip(b"0123456789\n")
        assert read.end >= position
        position = read.end

    def generation() -> int:
        return moved.parse_map(moved.read_map_text(str(log))).generation

    with running_job(log, "seq", "1", "100000000000"):
        for _ in range(20):
            before = generation()
            keeper = subprocess.Popen([sys.executable, "-c", BOUNDING, str(log)])
            try:
                while generation() < before + 60:
                    assert keeper.poll() is None
                    look()
            finally:
                keeper.kill()
                keeper.wait()
            look()
    result = LogBounder(log, SMALL).bound(final=True)
    assert result.copying
    assert result.total - result.dropped <= SMALL.head + SMALL.tail + 2 * 4096
    assert read_output(log, finished=True).text.startswith("1\n2\n3\n")
    last = read_stream(log, bounds=SMALL).segments[-1].data
    numbers = [int(line) for line in last.splitlines()[-1000:-1]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_x3_what_is_known_to_be_lost_is_counted(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job writes faster than the copy can follow."""
    append(log, seq_bytes(0, 200_000))
    total = 200_000
    real = os.fstat

    def fstat(fd: int) -> os.stat_result:
        nonlocal total
        append(log, seq_bytes(total, total + 100))
        total += 100
        return real(fd)

    monkeypatch.setattr(os, "fstat", fstat)
    bound(log)
    monkeypatch.undo()
    read = read_stream(log)
    assert_true(read, total)
    lost = read.gaps[-1]
    assert len(read.gaps) == 2
    assert 0 < lost.length == lost.dropped <= 1000


def test_x3_a_reader_that_meets_a_move_reads_again(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, seq_bytes(0, 200_000))
    real = os.pread
    sizes = iter([260_000, 320_000])

    def pread(fd: int, length: int, offset: int) -> bytes:
        if size := next(sizes, None):
            append(log, seq_bytes(size - 60_000, size))
            with monkeypatch.context() as context:
                context.setattr(os, "pread", real)
                bound(log)
        return real(fd, length, offset)

    monkeypatch.setattr(os, "pread", pread)
    read = read_stream(log)
    assert_true(read, 320_000)
    assert read.copied


def test_x3_the_log_of_a_removed_task_is_empty(log: Path) -> None:
    append(log, seq_bytes(0, 200_000))
    bound(log)
    for path in log.parent.iterdir():
        path.unlink()
    assert read_stream(log).segments == ()
    wait_until(lambda: read_output(log, finished=True).complete)
