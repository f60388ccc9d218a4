"""X2: a job has its folder in its hands: nothing that it puts beside its log is waited for.

Where these tests fail, they hang: of a pipe somebody waits for a writer, of a lock for its holder.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from backburner.work.log import moved
from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds
from backburner.work.log.measure import measure
from backburner.work.log.stream import read_stream
from backburner.work.plain_file import open_plain
from tests.work.log.jobs import seq_bytes

KIB = 1024
SMALL = LogBounds(head=8 * KIB, tail=32 * KIB, slack=16 * KIB)
MOVED = moved.LogMap(1, moved.State.STEADY, moved.Layout(head=3, tail=1, tail_at=3, live_at=6))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "output.log"


@pytest.fixture
def flood(log: Path) -> bytes:
    """A log that is due to be moved, and what is in it."""
    data = seq_bytes(0, 200 * KIB)
    log.write_bytes(data)
    return data


@pytest.fixture
def held(log: Path) -> Iterator[int]:
    """Somebody has the lock of the log, and does not let go of it."""
    fd = os.open(f"{log}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield fd
    os.close(fd)


def say(log: Path, found: moved.LogMap, **instead: Any) -> None:
    """Put this map beside the log."""
    Path(f"{log}.map").write_text(json.dumps(asdict(found) | instead))


@pytest.mark.parametrize("name", ["map", "head", "tail.1"])
def test_x2_nobody_who_reads_waits_for_a_writer(log: Path, name: str) -> None:
    log.write_bytes(b"end")
    for other in ("head", "tail.1"):
        Path(f"{log}.{other}").write_bytes(b"abc")
    say(log, MOVED)
    assert read_stream(log).total == 9
    os.unlink(f"{log}.{name}")
    os.mkfifo(f"{log}.{name}")
    with pytest.raises(OSError, match="it is no plain file"):
        read_stream(log)


@pytest.mark.parametrize("name", ["map", "map.new", "lock", "head", "tail.1"])
def test_x2_nobody_who_moves_waits_for_a_reader_or_a_writer(
    log: Path, flood: bytes, name: str
) -> None:
    """And the log is as it was, whatever was in the way."""
    os.mkfifo(f"{log}.{name}")
    for final in (False, True):
        with pytest.raises(OSError):  # noqa: PT011 - of a pipe each way of opening has its own
            LogBounder(log, SMALL, copying=True).bound(final=final)
        assert log.read_bytes() == flood


def test_x2_a_pipe_in_the_place_of_the_log_is_not_moved(log: Path) -> None:
    os.mkfifo(log)
    with pytest.raises(OSError, match="it is no plain file"):
        LogBounder(log, SMALL, copying=True).bound()


def test_x2_nobody_waits_for_a_lock_that_a_job_holds(log: Path, flood: bytes, held: int) -> None:
    bounder = LogBounder(log, SMALL, copying=True)
    for final in (False, True):
        with pytest.raises(BlockingIOError):
            bounder.bound(final=final)
    assert log.read_bytes() == flood
    fcntl.flock(held, fcntl.LOCK_UN)
    assert bounder.bound().dropped > 0, "the next look tries again"


def test_x3_the_last_look_waits_for_readers(log: Path, flood: bytes, held: int) -> None:
    """They have the lock for a moment, and there is no next look."""
    fcntl.flock(held, fcntl.LOCK_SH)
    letting_go = threading.Timer(0.005, fcntl.flock, (held, fcntl.LOCK_UN))
    letting_go.start()
    result = LogBounder(log, SMALL, copying=True).bound(final=True)
    letting_go.join()
    assert result.dropped > 0


def test_x2_who_moves_logs_itself_does_not_wait_for_a_move(log: Path, held: int) -> None:
    log.touch()
    say(log, MOVED, state="marking", layout=asdict(moved.Layout()))
    with pytest.raises(BlockingIOError):
        measure(log, patience_s=0)
    fcntl.flock(held, fcntl.LOCK_UN)
    assert measure(log, patience_s=0) == (0, 0)


@pytest.mark.parametrize(
    "instead",
    [
        {"layout": {"head": "3", "tail": 1, "tail_at": 3, "live_at": 6}},
        {"layout": {"head": -3, "tail": 1, "tail_at": 3, "live_at": 6}},
        {"layout": {"head": 3, "tail": True, "tail_at": 3, "live_at": 6}},
        {"layout": {"head": 3, "tail": 3, "tail_at": 3, "live_at": 6}},
        {"layout": {"head": 9, "tail": 1, "tail_at": 3, "live_at": 6}},
        {"layout": {"head": 3, "tail": 1, "tail_at": 3, "live_at": 2**63}},
        {"layout": {"head": 3, "tail": 1, "tail_at": 7, "live_at": 6}},
        {"after": {"head": 3, "tail": 1, "tail_at": 0.5, "live_at": 6}},
        {"generation": None},
        {"token": 7},
        {"covered": "no hex"},
        {"covered": "00" * 33},
    ],
    ids=str,
)
def test_x2_a_map_that_nobody_of_us_has_written_is_damaged(
    log: Path, instead: dict[str, Any]
) -> None:
    log.write_bytes(b"end")
    say(log, MOVED, **instead)
    with pytest.raises(OSError, match="damaged"):
        read_stream(log)
    with pytest.raises(OSError, match="damaged"):
        LogBounder(log).bound()


@pytest.mark.parametrize("text", ["[" * 4000, " " * 10**6])
def test_x2_nor_is_one_that_is_too_deep_or_too_long(log: Path, text: str) -> None:
    log.write_bytes(b"end")
    Path(f"{log}.map").write_text(text)
    with pytest.raises(OSError, match="damaged"):
        read_stream(log)


def test_x2_a_tail_that_a_job_has_lengthened_is_as_long_as_the_map_says(log: Path) -> None:
    log.write_bytes(b"end")
    Path(f"{log}.head").write_bytes(b"abc")
    Path(f"{log}.tail.1").write_bytes(b"def and more")
    say(log, MOVED)
    read = read_stream(log)
    assert [segment.data for segment in read.segments] == [b"abcdefend"]
    assert (read.total, read.dropped, measure(log)) == (9, 0, (9, 0))


def test_x2_only_plain_files_are_opened(tmp_path: Path) -> None:
    path = str(tmp_path / "new")
    os.close(open_plain(path, os.O_WRONLY | os.O_CREAT))
    assert os.stat(path).st_mode & 0o777 == 0o600
    fd = open_plain(path)
    assert not os.get_inheritable(fd)
    os.close(fd)
    open_now = os.listdir("/proc/self/fd")
    os.mkfifo(tmp_path / "pipe")
    for other in (str(tmp_path / "pipe"), str(tmp_path), "/dev/null"):
        with pytest.raises(OSError, match="it is no plain file"):
            open_plain(other)
    assert os.listdir("/proc/self/fd") == open_now
