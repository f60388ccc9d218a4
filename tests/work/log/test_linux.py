"""X3: the Linux calls beneath the bounded log, each against the real kernel."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backburner.work import linux
from backburner.work.linux import Inotify, Watch
from tests.waiting import wait_until


@pytest.fixture
def inotify() -> Iterator[Inotify]:
    with Inotify() as instance:
        yield instance


def test_x3_a_hole_frees_blocks_and_keeps_the_size(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 1_000_000)
    fd = os.open(path, os.O_RDWR)
    try:
        linux.punch_hole(fd, 4096, 4096 * 100)
        status = os.fstat(fd)
        assert status.st_size == 1_000_000
        assert status.st_blocks * 512 < 700_000
        assert os.pread(fd, 10, 4090) == b"x" * 6 + b"\0" * 4
    finally:
        os.close(fd)


def test_x3_a_failure_carries_its_errno() -> None:
    with pytest.raises(OSError, match="fallocate") as failure:
        linux.punch_hole(-1, 0, 4096)
    assert failure.value.errno == errno.EBADF


def test_x3_inotify_tells_what_was_written(tmp_path: Path, inotify: Inotify) -> None:
    logs = [tmp_path / "one", tmp_path / "two"]
    for log in logs:
        log.touch()
    one, two = (inotify.add(log, Watch.MODIFY) for log in logs)
    assert inotify.drain() == []
    logs[1].write_text("x")
    assert (two, Watch.MODIFY) in inotify.drain()
    inotify.remove(two)
    inotify.remove(two)  # a second time is no error
    logs[0].write_text("y")
    events = inotify.drain()
    assert (two, Watch.IGNORED) in events
    assert (one, Watch.MODIFY) in events


def test_x3_inotify_tells_what_was_made_moved_and_removed(tmp_path: Path, inotify: Inotify) -> None:
    folder = inotify.add(tmp_path, Watch.CREATE)
    log = tmp_path / "a name longer than sixteen characters"
    log.touch()
    wd = inotify.add(log, Watch.MOVE_SELF | Watch.DELETE_SELF)
    moved = log.rename(tmp_path / "moved")
    moved.unlink()
    assert inotify.drain() == [
        (folder, Watch.CREATE),
        (wd, Watch.MOVE_SELF),
        (wd, Watch.DELETE_SELF),
        (wd, Watch.IGNORED),
    ]


def test_x3_inotify_names_the_missing_file(tmp_path: Path, inotify: Inotify) -> None:
    with pytest.raises(FileNotFoundError) as failure:
        inotify.add(tmp_path / "missing", Watch.MODIFY)
    assert failure.value.filename == str(tmp_path / "missing")


def test_x3_inotify_closes_once_and_is_not_inherited() -> None:
    instance = Inotify()
    assert not os.get_inheritable(instance.fileno())
    assert not os.get_blocking(instance.fileno())
    instance.close()
    instance.close()


def test_x2_orphans_become_children_of_the_subreaper() -> None:
    script = """
import os, sys, time
from backburner.work import linux
linux.set_child_subreaper()
middle = os.fork()
if middle == 0:
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(7)
    os._exit(0)
os.waitpid(middle, 0)
print("ready", flush=True)
print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == "ready\n"
        process.stdin.close()
        assert process.stdout.read() == "7\n"


def test_x3_other_systems_answer_enosys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    linux._libc.cache_clear()  # pyright: ignore[reportPrivateUsage]
    for call in (lambda: linux.punch_hole(0, 0, 1), linux.set_child_subreaper, Inotify):
        with pytest.raises(OSError, match="only Linux") as failure:
            call()
        assert failure.value.errno == errno.ENOSYS


def test_x3_a_flood_of_events_is_drained(tmp_path: Path, inotify: Inotify) -> None:
    logs = [tmp_path / str(number) for number in range(20)]
    for log in logs:
        log.touch()
    watched = {inotify.add(log, Watch.MODIFY) for log in logs}
    for _ in range(1000):  # more than the queue holds, with no two equal ones in a row
        for log in logs:
            os.truncate(log, 1)
    seen: set[int] = set()

    def overflow_seen() -> bool:
        events = inotify.drain()
        seen.update(wd for wd, _ in events)
        return any(mask & Watch.Q_OVERFLOW for _, mask in events)

    wait_until(overflow_seen, message="no overflow was told")
    assert watched <= seen
