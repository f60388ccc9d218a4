"""Memory cgroups as they are laid out: version 1 here, version 2 by its files' names.

No machine has the memory controller in both versions, so what version 2 says is read from files of
these names in a folder; what the kernel does with a limit is in tests/runtime/test_allowance.py.
"""

import os
import secrets
import time
from pathlib import Path

import pytest

from backburner.work.process import cgroup, memory
from backburner.work.process.memory import MemoryGroups

MB = 1024 * 1024


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def delegated(tmp_path: Path, *, to_family: str = "memory pids") -> tuple[Path, Path]:
    """A home's folder and a task's cgroup in it, as with version 2."""
    write(tmp_path, cgroup__subtree_control="cpu memory")
    family = write(tmp_path / "backburner.x", cgroup__subtree_control=to_family)
    files = {"memory__max": "max\n", "memory__swap__max": "max\n", "cgroup__procs": ""}
    return family, write(family / "bg_1.1", **files)


def test_x9_in_version_2_the_jobs_own_cgroup_is_limited_and_has_no_swap(tmp_path: Path) -> None:
    family, task = delegated(tmp_path)
    groups = MemoryGroups("x", str(family))
    assert groups.make("bg_1.1", 64 * MB, str(task)) == str(task)
    assert (task / "memory.max").read_text().startswith(str(64 * MB))
    assert (task / "memory.swap.max").read_text().startswith("0")
    assert memory.join(str(task), 4711)
    assert (task / "cgroup.procs").read_text() == "4711"


def test_x9_in_version_2_the_controller_is_turned_on_where_it_may_be(tmp_path: Path) -> None:
    family, task = delegated(tmp_path, to_family="")
    groups = MemoryGroups("x", str(family))
    assert (family / "cgroup.subtree_control").read_text() == ""
    assert groups.make("bg_1.1", 64 * MB, str(task)) == str(task)
    assert (family / "cgroup.subtree_control").read_text() == "+memory"


def test_x9_in_version_2_a_kill_counts_where_the_limit_was_reached(tmp_path: Path) -> None:
    _, task = delegated(tmp_path)
    for events, exceeded in {
        "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n": True,
        "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n": False,
        "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n": False,  # the whole machine had none left
    }.items():
        (task / "memory.events").write_text(events)
        assert memory.was_exceeded(str(task)) is exceeded


def test_x9_in_version_1_a_kill_counts_where_the_peak_is_near_the_limit(tmp_path: Path) -> None:
    control = "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"
    for killed, peak, exceeded in ((1, 100, True), (1, 50, False), (0, 100, False)):
        group = write(
            tmp_path,
            memory__oom_control=control.format(killed),
            memory__limit_in_bytes=f"{100 * MB}\n",
            memory__max_usage_in_bytes=f"{peak * MB}\n",
        )
        assert memory.was_exceeded(str(group)) is exceeded


def test_x9_a_cgroup_that_is_gone_says_nothing(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    assert not memory.was_exceeded(gone)
    assert memory.cpu_seconds(gone) == 0
    assert not memory.join(gone, os.getpid())


def test_x9_used_cpu_time_is_in_seconds(tmp_path: Path) -> None:
    write(tmp_path, cpu__stat="usage_usec 2500000\nuser_usec 2000000\n")
    assert memory.cpu_seconds(str(tmp_path)) == 2.5


def test_x9_only_what_is_ours_or_old_is_swept(tmp_path: Path) -> None:
    """A keeper of another home may have made a cgroup a moment ago."""
    groups, others = [MemoryGroups(secrets.token_hex(6), None) for _ in range(2)]
    kept, left, theirs = (
        groups.make("bg_1.1", 64 * MB, None),
        groups.make("bg_2.1", 64 * MB, None),
        others.make("bg_3.1", 64 * MB, None),
    )
    assert kept is not None
    assert left is not None
    assert theirs is not None
    try:
        groups.sweep({kept})
        assert [os.path.exists(path) for path in (kept, left, theirs)] == [True, False, True]
        hour_ago = time.time() - 3700
        os.utime(theirs, (hour_ago, hour_ago))
        groups.sweep(set())
        assert [os.path.exists(path) for path in (kept, theirs)] == [False, False]
        assert not os.path.exists(os.path.dirname(theirs))
    finally:
        for path in (kept, left, theirs):
            if os.path.exists(path):
                os.rmdir(path)
        groups.close()
        others.close()


@pytest.mark.parametrize("alone", [True, False])
def test_x9_who_lives_alone_makes_room_so_that_a_controller_can_be_handed_on(
    tmp_path: Path, alone: bool
) -> None:
    """As in a unit of systemd: a cgroup with processes of its own cannot hand one on."""
    others = "" if alone else "1\n"
    own = write(tmp_path / "backburner.service", cgroup__procs=f"{os.getpid()}\n{others}")
    (own / "cgroup.subtree_control").mkdir()  # cannot be written to
    aside = write(own / "backburner-keeper", cgroup__procs="")
    assert not cgroup.enable(str(own / "backburner.0123456789ab"), "memory")
    assert (aside / "cgroup.procs").read_text() == (str(os.getpid()) if alone else "")


def test_x9_a_unit_of_systemd_is_not_taken_for_a_job() -> None:
    unit = "/sys/fs/cgroup/user.slice/app.slice/backburner.service"
    assert cgroup.outside_jobs(unit) == unit
    assert cgroup.outside_jobs(f"{unit}/backburner.0123456789ab/bg_1.1") == unit
    assert cgroup.is_family(f"{unit}/backburner.0123456789ab")
    assert not cgroup.is_family(unit)
