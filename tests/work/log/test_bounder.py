"""E6, X3: a log keeps its head and its tail while the job writes at full speed."""

import errno
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest

from backburner.work import linux
from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import BoundResult, LogBounds
from backburner.work.log.read import read_output
from backburner.work.log.stream import read_stream
from tests.waiting import wait_until
from tests.work.log.jobs import on_disk, running_job, seq_bytes, seq_size

KIB = 1024
SMALL = LogBounds(head=8 * KIB, tail=32 * KIB, slack=16 * KIB)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "output.log"


def append(log: Path, data: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)


def test_e6_the_first_256_kib_and_the_last_mib_are_kept_unless_told() -> None:
    assert LogBounds() == LogBounds(head=256 * KIB, tail=1024 * KIB)
    with pytest.raises(ValueError, match="negative"):
        LogBounds(head=-1)


def test_e6_no_log_is_an_empty_log(log: Path) -> None:
    assert LogBounder(log).bound() == BoundResult(0, 0)
    assert LogBounder(log, copying=True).bound(final=True) == BoundResult(0, 0, copying=True)


def test_e6_a_log_within_its_bounds_is_left_alone(log: Path) -> None:
    append(log, b"x" * (SMALL.most - 1))
    before = on_disk(log)
    assert LogBounder(log, SMALL).bound() == BoundResult(SMALL.most - 1, 0)
    assert on_disk(log) == before


def test_e6_the_middle_is_freed_only_when_it_is_worth_it(log: Path) -> None:
    bounder = LogBounder(log, SMALL)
    freed = 0
    sizes: set[int] = set()
    for _ in range(400):
        append(log, b"x" * 1000)
        result = bounder.bound()
        sizes.add(result.dropped)
        assert result.dropped >= freed
        assert result.total - result.dropped <= SMALL.most + 2 * 4096
        freed = result.dropped
    assert len(sizes) < 30


def test_x3_head_and_tail_are_exact_after_the_end(log: Path) -> None:
    with running_job(log, "seq", "1", "2000000") as job:
        bounder = LogBounder(log)
        wait_until(lambda: bounder.bound() and job.poll() is not None)
    total = seq_size(2_000_000)
    result = bounder.bound(final=True)
    assert result.total == total
    kept = total - result.dropped
    assert 1280 * KIB <= kept <= 1280 * KIB + 2 * 4096
    assert on_disk(log) <= kept + 4096 * 4  # and what the file system needs for itself

    read = read_stream(log)
    head, tail = read.segments
    assert head.data == seq_bytes(0, 256 * KIB)
    assert tail.data == seq_bytes(tail.offset, total)
    assert total - tail.offset >= 1024 * KIB
    assert read.dropped == result.dropped
    assert bounder.bound(final=True) == result


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [LogBounds(), SMALL], ids=["default", "small"])
def test_x3_readers_never_see_the_nuls_of_a_hole(log: Path, bounds: LogBounds) -> None:
    """A7: reading while it runs gives the job's own bytes, at the right place, or says dropped."""
    last = 30_000_000
    with running_job(log, "seq", "1", str(last)) as job:
        bounder = LogBounder(log, bounds)
        done = threading.Event()

        def bound() -> None:
            while not done.is_set():
                bounder.bound()

        thread = threading.Thread(target=bound)
        thread.start()
        try:
            cursor = None
            position = reads = checked = 0
            while job.poll() is None:
                chunk = read_output(log, since=cursor, finished=False, max_chars=None, raw=True)
                cursor = chunk.cursor
                assert "\0" not in chunk.text
                read = read_stream(log, bounds=bounds)
                assert read.end >= position
                position = read.end
                for segment in read.segments:
                    assert b"\0" not in segment.data
                for segment in read.segments[-1:]:  # the one that a hole grows into
                    checked += 1
                    end = min(segment.end, segment.offset + 32 * KIB)
                    assert segment.data[: 32 * KIB] == seq_bytes(segment.offset, end)
                reads += 1
        finally:
            done.set()
            thread.join()
    assert reads
    assert checked
    final = bounder.bound(final=True)
    assert final.total == seq_size(last)


def test_x3_what_becomes_a_hole_while_it_is_read_is_told_as_dropped(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, seq_bytes(0, 200_000))
    real_pread = os.pread

    def slow_pread(fd: int, length: int, offset: int) -> bytes:
        LogBounder(log, SMALL).bound(final=True)  # between finding the data and reading it
        return real_pread(fd, length, offset)

    monkeypatch.setattr(os, "pread", slow_pread)
    read = read_stream(log)
    assert [segment.offset for segment in read.segments] == [0, read.gaps[0].offset + read.dropped]
    assert all(segment.data == seq_bytes(segment.offset, segment.end) for segment in read.segments)
    assert read.dropped > 100_000


def test_x3_a_new_keeper_goes_on_where_the_last_one_stopped(log: Path) -> None:
    append(log, seq_bytes(0, 500_000))
    first = LogBounder(log, SMALL).bound()
    assert first.dropped > 0
    assert LogBounder(log, SMALL).bound() == first
    append(log, seq_bytes(500_000, 600_000))
    second = LogBounder(log, SMALL).bound()
    assert second.total == 600_000
    assert second.dropped > first.dropped
    assert read_stream(log).dropped == second.dropped


@pytest.mark.parametrize("copying", [False, True])
def test_a7_a_job_may_empty_its_own_log(log: Path, copying: bool) -> None:
    """`echo x > /dev/stdout` does, where standard output is a file."""
    bounder = LogBounder(log, SMALL, copying=copying)
    append(log, b"old\n" * 50_000)
    assert bounder.bound().dropped > 0
    cursor = read_output(log, finished=False).cursor
    os.truncate(log, 0)
    append(log, b"new\n")
    bounder.bound()
    chunk = read_output(log, since=cursor, finished=False)
    assert chunk.text.endswith("new\n")
    assert "old" not in chunk.text
    append(log, b"newer\n" * 50_000)
    assert bounder.bound(final=True).dropped > 0
    chunk = read_output(log, since=chunk.cursor, finished=True)
    assert "newer\n  ⋮" in chunk.text
    assert "old" not in chunk.text


def test_x3_a_keeper_can_have_thousands_of_them(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}" / "output.log") for number in range(1000)]
    for path in paths:
        os.makedirs(os.path.dirname(path))
        append(Path(path), b"x" * SMALL.most * 2)
    descriptors = len(os.listdir("/proc/self/fd"))
    tracemalloc.start()
    try:
        bounders = [LogBounder(path, SMALL) for path in paths]
        for bounder in bounders:
            bounder.bound()
        each = tracemalloc.get_traced_memory()[0] / len(bounders)
    finally:
        tracemalloc.stop()
    assert each < 2 * KIB
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.ENOSYS])
def test_x3_where_holes_cannot_be_punched_the_log_is_copied(
    log: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(fd: int, offset: int, length: int) -> None:
        raise OSError(code, "cannot")

    monkeypatch.setattr(linux, "punch_hole", refuse)
    append(log, seq_bytes(0, 200_000))
    result = LogBounder(log, SMALL).bound()
    assert result == BoundResult(200_000, 200_000 - SMALL.head - SMALL.tail, copying=True)
    assert LogBounder(log, SMALL).bound() == result  # the next keeper finds the map


def test_x3_any_other_failure_is_told(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int, offset: int, length: int) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(linux, "punch_hole", fail)
    append(log, b"x" * 200_000)
    with pytest.raises(OSError, match="broken disk"):
        LogBounder(log, SMALL).bound()


def test_x3_a_file_system_without_holes(tmp_path: Path) -> None:
    """ramfs has none. It is mounted where only the process that uses it can see it."""
    script = f"""
import subprocess, sys
from pathlib import Path
from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds
from backburner.work.log.read import read_output
log = Path({str(tmp_path)!r}) / "output.log"
log.write_bytes(b"".join(b"%d\\n" % n for n in range(100_000)))
result = LogBounder(log, LogBounds(8192, 32768, 16384)).bound(final=True)
chunk = read_output(log, finished=True, max_chars=None)
print(result.copying, result.total, chunk.total, chunk.text[:4].split(), chunk.text[-12:].split())
"""
    mount = f'mount -t ramfs ramfs "{tmp_path}" || exit 77; exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, sys.executable, script],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this user may not mount")
    assert done.stdout == "True 588890 588890 ['0', '1'] ['99998', '99999']\n", done.stderr
