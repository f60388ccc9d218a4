"""A wrapper that a test starts by itself, without a keeper; everything of it ends with the test."""

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backburner.model.home import AttemptFolder
from backburner.work.process import cgroup, wrapper
from backburner.work.process.launcher import Launcher
from backburner.work.process.tree import Tree
from tests.faults.homes import home_of_module, shared_home
from tests.faults.victims import is_running, unique_seconds
from tests.waiting import wait_until
from tests.work.process.launchers import group, ready, unready

# Fixtures of other modules.
__all__ = ["group", "home_of_module", "ready", "shared_home", "unready"]


@dataclass(frozen=True, slots=True)
class Started:
    """A wrapper, its files, and everything that descends from it."""

    pid: int
    folder: AttemptFolder
    tree: Tree

    def collect(self) -> None:
        """Wait for the end of the wrapper, and collect it as its keeper would."""
        os.waitpid(self.pid, 0)


StartWrapper = Callable[..., Started]


@pytest.fixture
def start_wrapper(tmp_path: Path) -> Iterator[StartWrapper]:
    """Starts `argv` behind a wrapper; `group` is the folder of a cgroup, `how` goes to Launch."""
    started: list[Started] = []

    def start(
        *argv: str,
        cwd: Path = tmp_path,
        environment: dict[str, str] | None = None,
        group: str | None = None,
        launcher: Launcher | None = None,
        **how: Any,
    ) -> Started:
        task_id = f"t{len(started)}-{uuid.uuid4().hex[:8]}"
        environment = {"PATH": os.environ["PATH"]} if environment is None else environment
        launch = wrapper.Launch(argv, str(cwd), environment, 0o022, 1024, **how)
        folder = AttemptFolder(str(tmp_path / task_id))
        tree = Tree(str(tmp_path), task_id, 1, group)
        waiting = wrapper.start(folder, launch, mark=tree.mark, cgroup=group, launcher=launcher)
        each = Started(waiting.pid, folder, tree)
        started.append(each)
        waiting.go()
        return each

    yield start

    for each in started:
        wait_until(lambda each=each: not _end(each.tree), message="cannot be ended")
        each.tree.dissolve()


def _end(tree: Tree) -> bool:
    """Kill the tree once; whether there was any."""
    fds = tree.kill()
    for fd in fds:
        os.close(fd)
    return bool(fds)


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that belongs to nobody's task, and that has to live when the test ends."""
    process = subprocess.Popen(["sleep", unique_seconds()])
    yield process
    alive = is_running(process.pid)
    process.kill()
    process.wait()
    assert alive, "an innocent bystander was killed"


@pytest.fixture
def family() -> Iterator[str]:
    """A folder for cgroups."""
    folder = cgroup.family_folder(f"test-{uuid.uuid4().hex[:8]}")
    if folder is None:
        pytest.skip("this machine lets us make no cgroup (version 2)")
    yield folder
    cgroup.remove(folder)
