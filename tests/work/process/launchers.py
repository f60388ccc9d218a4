"""Launchers for tests, and wrappers that they start."""

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backburner.model.home import AttemptFolder
from backburner.work.process import cgroup, launcher, wrapper
from backburner.work.process.condition import Ended, NotBegun, inspect
from backburner.work.process.launcher import Launcher
from backburner.work.process.mark import mark_for, mark_of
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.work.process.conftest import Started

PATH = {"PATH": os.environ["PATH"]}


class Noting(Launcher):
    """Notes which wrappers it has started."""

    def __init__(self) -> None:
        super().__init__()
        self.launched: list[int] = []

    def spawn(self, *words: object, **how: object) -> int:
        """As every launcher."""
        pid = super().spawn(*words, **how)  # type: ignore[arg-type]
        self.launched.append(pid)
        return pid


@pytest.fixture
def group(family: str) -> Iterator[str]:
    """The cgroup of a task."""
    folder = f"{family}/t.1"
    assert cgroup.make(folder)
    yield folder
    wait_until(lambda: not cgroup.is_populated(folder))
    cgroup.remove(folder)


@pytest.fixture
def unready(monkeypatch: pytest.MonkeyPatch) -> Iterator[Noting]:
    """A launcher without a process, for which no start comes too soon."""
    monkeypatch.setattr(launcher, "_CROWD_S", 0)
    monkeypatch.setattr(launcher, "_CROWD", 2)
    monkeypatch.setattr(launcher, "_APART_S", 0)
    each = Noting()
    yield each
    pid = each.pid
    each.close()
    assert pid is None or not os.path.exists(f"/proc/{pid}"), "it was not collected"


@pytest.fixture
def ready(unready: Noting) -> Noting:
    """One that waits for requests."""
    make_ready(unready)
    return unready


def make_ready(each: Launcher) -> int:
    """Let a start miss it, and wait until it is there."""
    each.takes_next()
    each.tend()
    wait_until(each.is_ready, message="the launcher does not come up")
    assert each.pid is not None
    return each.pid


def is_collected(each: Launcher) -> bool:
    """Whether its worker, which looks, has no process of it any more."""
    each.tend()
    return each.pid is None


def output_of(started: "Started") -> str:
    """What it wrote, once it has ended well."""
    started.collect()
    assert inspect(started.folder) == Ended(0, by_signal=False)
    return Path(started.folder.log).read_text()


@contextlib.contextmanager
def waiting(
    tmp_path: Path, group: str, each: Launcher | None, **how: object
) -> Generator[wrapper.Started]:
    """A wrapper that never gets the word."""
    launch = wrapper.Launch(["true"], str(tmp_path), PATH, 0o022, 1024, **how)  # type: ignore[arg-type]
    folder = AttemptFolder(str(tmp_path / "waiting.1"))
    mark = mark_for(str(tmp_path), "waiting", 1)
    started = wrapper.start(folder, launch, mark=mark, cgroup=group, launcher=each)
    try:
        yield started
        # A child of a launcher has it before it is a wrapper, but not from its first moment.
        wait_until(lambda: mark_of(started.pid) == mark)
    finally:
        started.give_up()
    assert inspect(folder) == NotBegun()
