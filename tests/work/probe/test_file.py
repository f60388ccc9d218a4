"""X4: a file is ready when the job has written it, and is noticed without asking for it."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from backburner.model import clock
from backburner.work.linux import Inotify
from backburner.work.probe import file as module
from backburner.work.probe.file import FileProbe


def probe_of(path: Path, *, started_at: int | None = None) -> FileProbe:
    return FileProbe(str(path), path.name, clock.now() if started_at is None else started_at)


def touch(path: Path) -> None:
    path.touch()


def rename(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_text("1")
    other.rename(path)


def link(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_text("1")
    path.symlink_to(other)


@pytest.mark.parametrize("make", [touch, rename, link, Path.mkdir])
async def test_x4_a_file_that_appears_ends_the_wait(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "ready"
    probe = probe_of(path)
    assert not (await probe.look()).ready
    pause = asyncio.create_task(probe.pause(60))
    make(path)
    await asyncio.wait_for(pause, 30)  # it was told, and did not look by the clock
    answer = await probe.look()
    assert (answer.ready, answer.text) == (True, "ready is there")
    probe.close()


async def test_x4_a_file_from_before_the_start_counts_when_it_is_written_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ready"
    path.touch()
    probe = probe_of(path, started_at=clock.now() + clock.SECOND // 4)
    answer = await probe.look()
    assert not answer.ready
    assert "from before the start" in answer.text
    while not answer.ready:
        os.utime(path)
        await probe.pause(0.01)
        answer = await probe.look()
    probe.close()


async def test_x4_a_file_that_was_seen_to_appear_counts_whatever_its_time(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    probe = probe_of(path, started_at=clock.now() + 3600 * clock.SECOND)
    assert not (await probe.look()).ready
    path.touch()
    assert (await probe.look()).ready
    probe.close()


async def test_x4_a_folder_that_comes_later_is_watched_then(tmp_path: Path) -> None:
    path = tmp_path / "run" / "ready"
    probe = probe_of(path)
    assert not (await probe.look()).ready
    await probe.pause(0.01)
    path.parent.mkdir()
    assert not (await probe.look()).ready
    pause = asyncio.create_task(probe.pause(60))
    path.touch()
    await asyncio.wait_for(pause, 30)
    assert (await probe.look()).ready
    probe.close()


async def test_x4_a_folder_that_is_replaced_is_watched_anew(tmp_path: Path) -> None:
    path = tmp_path / "run" / "ready"
    path.parent.mkdir()
    probe = probe_of(path)
    assert not (await probe.look()).ready
    path.parent.rmdir()
    assert not (await probe.look()).ready
    path.parent.mkdir()
    assert not (await probe.look()).ready
    pause = asyncio.create_task(probe.pause(60))
    path.touch()
    await asyncio.wait_for(pause, 30)
    assert (await probe.look()).ready
    probe.close()


async def test_x4_without_inotify_it_is_looked_at_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> Inotify:
        raise OSError(24, "too many")

    monkeypatch.setattr(module, "Inotify", none)
    path = tmp_path / "ready"
    probe = probe_of(path)
    assert not (await probe.look()).ready
    path.touch()
    await probe.pause(0.01)
    assert (await probe.look()).ready
    probe.close()


async def test_x4_a_dangling_link_or_a_closed_folder_is_not_ready(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.symlink_to(tmp_path / "nothing")
    probe = probe_of(path)
    assert not (await probe.look()).ready
    probe.close()
