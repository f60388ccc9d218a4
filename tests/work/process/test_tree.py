"""Which processes belong to a task, and that all of them and nobody else can be ended (X2, A3)."""

import os
import resource
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backburner.work.process import cgroup
from backburner.work.process.mark import (
    clear_own_mark,
    mark_for,
    mark_of,
    marking_children,
)
from backburner.work.process.tree import Tree, populated
from tests.faults.victims import is_running, processes_with, sleepers, unique_seconds
from tests.waiting import wait_until
from tests.work.process.conftest import Started, StartWrapper

ESCAPES = {
    "plain": "exec sleep {}",
    "child": "sleep {} & wait",
    "cleared environment": "exec env -i sleep {}",
    "new session": "setsid sleep {} & wait",
    "cleared environment in a new session": "env -i setsid -f sleep {}",
    "forked twice": "( ( sleep {} & ) & )",
    "closed descriptors": "exec sleep {} <&- >&- 2>&-",
    "another folder and root's": "cd /; exec setsid -f env -i sleep {}",
    "several execs": "exec env A=1 env B=2 sh -c 'exec sh -c \"exec sleep {}\"'",
    "rewrites its title": "exec -a kworker/0:0 sleep {}",
}


@pytest.fixture(params=["cgroup", "no cgroup"])
def start(request: pytest.FixtureRequest, start_wrapper: StartWrapper) -> Callable[..., Started]:
    """Starts a wrapper in a cgroup of its own, or in none."""
    if request.param == "no cgroup":
        return start_wrapper
    family: str = request.getfixturevalue("family")
    count = iter(range(100))

    def start_in_group(*argv: str) -> Started:
        group = f"{family}/t{next(count)}"
        assert cgroup.make(group)
        return start_wrapper(*argv, group=group)

    return start_in_group


def started_sleep(seconds: str) -> int:
    """The sleep of this length, once it runs."""
    return wait_until(lambda: next(iter(sleepers(seconds)), None))


def kill_all(tree: Tree) -> None:
    """Kill, and the proof that nothing is left."""
    for fd in tree.kill():
        os.close(fd)
    wait_until(lambda: not tree.members())


@pytest.mark.parametrize("escape", ESCAPES)
def test_x2_every_way_to_slip_away_leaves_a_sign(
    start: Callable[..., Started], escape: str
) -> None:
    seconds = unique_seconds()
    job = start("bash", "-c", ESCAPES[escape].format(seconds))
    sleep = started_sleep(seconds)
    assert sleep in job.tree.members()
    assert job.tree.is_populated()
    home = job.tree.home
    others = [Tree(home, "bg_another", 1, None), job.tree]
    assert populated(others) == [job.tree]
    kill_all(job.tree)
    assert not is_running(sleep)
    wait_until(lambda: not job.tree.is_populated())
    assert populated(others) == []


@pytest.mark.parametrize("escape", ESCAPES)
def test_x2_the_mark_alone_is_enough(start_wrapper: StartWrapper, escape: str) -> None:
    """Without a cgroup, and whatever became of the environment."""
    seconds = unique_seconds()
    job = start_wrapper("bash", "-c", ESCAPES[escape].format(seconds))
    sleep = started_sleep(seconds)
    assert mark_of(sleep) == job.tree.mark


def test_x2_the_environment_alone_is_enough(start_wrapper: StartWrapper, tmp_path: Path) -> None:
    """Where the mark could not be set, or the job set that limit itself."""
    seconds = unique_seconds()
    job = start_wrapper("sleep", "60")
    environment = {**os.environ, "BACKBURNER_TASK_ID": job.tree.task_id}
    stranger = subprocess.Popen(["sleep", seconds], env=environment)
    environment["BACKBURNER_HOME"] = str(tmp_path)
    member = subprocess.Popen(["sleep", seconds], env=environment)
    try:
        wait_until(lambda: len(processes_with(seconds)) == 2)
        assert member.pid in job.tree.members()
        assert stranger.pid not in job.tree.members()  # the same id, and another home
        next_one = Tree(job.tree.home, job.tree.task_id, 2, None)
        assert populated([next_one]) == [next_one], "it does not say of which attempt it is"
        member.kill()
        member.wait()
        assert populated([next_one]) == [], "what carries a mark is of that attempt"
    finally:
        for process in (member, stranger):
            process.kill()
            process.wait()


def test_x2_where_nothing_carries_a_mark_attempts_are_told_apart(tmp_path: Path) -> None:
    """An administrator may have limited real-time work: the environment is all that is left."""
    home, seconds = str(tmp_path), unique_seconds()
    environment = {**os.environ, "BACKBURNER_HOME": home, "BACKBURNER_TASK_ID": "bg_one"}
    second = subprocess.Popen(["sleep", seconds], env={**environment, "BACKBURNER_ATTEMPT": "2"})
    try:
        wait_until(lambda: processes_with(seconds))
        first, its_own = Tree(home, "bg_one", 1, None), Tree(home, "bg_one", 2, None)
        assert populated([first, its_own]) == [its_own]
        assert (first.members(), its_own.members()) == ([], [second.pid])
    finally:
        second.kill()
        second.wait()


@pytest.mark.parametrize("limit", [2**62 - 1, 2**62 + 2**56, 2**63 - 2])
def test_x2_a_limit_that_no_mark_can_be_is_none(tmp_path: Path, limit: int) -> None:
    """A job may set it as high as it likes: without a cgroup its environment still names it."""
    tree = Tree(str(tmp_path), "bg_one", 1, None)
    environment = {**os.environ, "BACKBURNER_HOME": tree.home, "BACKBURNER_TASK_ID": tree.task_id}
    seconds = unique_seconds()
    program = (
        f"import os, resource; resource.setrlimit(15, ({limit}, -1));"
        f" os.execvp('sleep', ['sleep', '{seconds}'])"
    )
    member = subprocess.Popen([sys.executable, "-c", program], env=environment)
    try:
        wait_until(lambda: sleepers(seconds))
        assert mark_of(member.pid) is None
        assert tree.members() == [member.pid]
        assert populated([tree]) == [tree]
    finally:
        member.kill()
        member.wait()


def test_x2_two_tasks_do_not_see_each_other(start: Callable[..., Started]) -> None:
    first, second = start("sleep", "60"), start("sleep", "60")
    wait_until(lambda: len(first.tree.members()) == 2 and len(second.tree.members()) == 2)
    assert not set(first.tree.members()) & set(second.tree.members())
    kill_all(first.tree)
    assert len(second.tree.members()) == 2


def test_marks_of_attempts_tasks_and_homes_differ() -> None:
    marks = {
        mark_for(home, task, attempt)
        for home in ("/a", "/b")
        for task in ("t", "u")
        for attempt in (1, 2)
    }
    assert len(marks) == 8
    assert all(mark < 2**63 for mark in marks)


def test_a_mark_costs_its_bearer_and_its_maker_nothing() -> None:
    """It is the soft limit of real-time processes that never block: 146,000 years."""
    before = resource.getrlimit(15)
    with marking_children(mark_for("/h", "t", 1)) as possible:
        assert possible
        said = subprocess.run(
            [sys.executable, "-c", "import resource; print(resource.getrlimit(15)[0])"],
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    assert int(said) == mark_for("/h", "t", 1)
    assert resource.getrlimit(15) == before
    assert int(said) / 1e6 / 86400 / 365 > 100_000


def test_a_process_can_leave_its_task() -> None:
    """So that a keeper that a job has started is not part of that job."""
    program = (
        "from backburner.work.process.mark import clear_own_mark, mark_of\n"
        "before = mark_of('self'); clear_own_mark(); print(before is not None, mark_of('self'))\n"
    )
    with marking_children(mark_for("/h", "t", 1)):
        said = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
    assert said == "True None\n"
    clear_own_mark()  # without one, nothing happens
    assert mark_of("self") is None


def test_x2_a_suspended_process_is_ended_too(start: Callable[..., Started]) -> None:
    seconds = unique_seconds()
    job = start("bash", "-c", f"sleep {seconds} & wait")
    sleep = started_sleep(seconds)
    os.kill(sleep, signal.SIGSTOP)
    os.kill(job.pid, signal.SIGSTOP)
    kill_all(job.tree)
    assert not is_running(sleep)


def test_x2_a_crowd_that_keeps_forking_is_ended(start: Callable[..., Started]) -> None:
    """Each process of the crowd is replaced by two others a moment later, up to a limit."""
    seconds = unique_seconds()
    line = (
        "trap '' TERM; f() { if [ $1 -lt 6 ]; then f $(($1+1)) & f $(($1+1)) & fi; "
        f"sleep {seconds}; }}; f 0 & wait"
    )
    job = start("bash", "-c", line)
    wait_until(lambda: len(job.tree.members()) > 40)
    wait_until(lambda: _kill_round(job.tree))
    assert processes_with(seconds) == []


def _kill_round(tree: Tree) -> bool:
    for fd in tree.kill():
        os.close(fd)
    return not tree.members()


def test_what_has_ended_and_was_not_collected_is_no_member(
    start_wrapper: StartWrapper,
) -> None:
    """Else the proof that nothing is left would wait for a parent that never looks."""
    job = start_wrapper("true")
    wait_until(lambda: job.tree.members() == [])
    assert not is_running(job.pid)
    assert Path(f"/proc/{job.pid}").exists()  # nobody has collected it
    job.collect()


# A recycled pid


def test_a3_a_pid_that_was_recycled_between_look_and_signal_is_not_hit(
    start_wrapper: StartWrapper,
    bystander: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if a member had ended in between and its number had been given to somebody else."""
    job = start_wrapper("sleep", "60")
    wait_until(lambda: len(job.tree.members()) == 2)
    look = Tree.members

    def look_and_err(tree: Tree) -> list[int]:
        return [*look(tree), bystander.pid]

    monkeypatch.setattr(Tree, "members", look_and_err)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for fd in job.tree.send(number):
            os.close(fd)
    for fd in job.tree.kill():
        os.close(fd)
    watched = job.tree.watch()
    for fd in watched:
        os.close(fd)
    assert watched == []
    monkeypatch.undo()
    wait_until(lambda: job.tree.members() == [])
    assert is_running(bystander.pid)  # and the fixture looks once more


# Cgroups


def test_cgroup_of_a_task_is_made_asked_and_given_back(family: str) -> None:
    group = f"{family}/one"
    assert cgroup.make(group)
    assert cgroup.make(group)  # again: a keeper that died in between
    assert not cgroup.is_populated(group)
    assert cgroup.members(group) == []
    child = subprocess.Popen(["sleep", "60"])
    Path(group, "cgroup.procs").write_text(str(child.pid))
    assert cgroup.is_populated(group)
    assert cgroup.members(group) == [child.pid]
    cgroup.remove(group)  # nothing happens: somebody is in it
    assert cgroup.members(group) == [child.pid]
    cgroup.kill(group)
    assert child.wait() == -signal.SIGKILL
    wait_until(lambda: not cgroup.is_populated(group))
    cgroup.remove(group)
    assert not Path(group).exists()


@pytest.mark.usefixtures("family")
def test_keepers_that_come_at_the_same_moment_all_have_their_cgroups() -> None:
    """Each removes the empty ones that it finds."""

    def comes(_: int) -> str | None:
        folder = cgroup.family_folder(uuid.uuid4().hex[:12])
        if folder is not None:
            cgroup.remove(folder)
        return folder

    with ThreadPoolExecutor(3) as pool:
        assert None not in list(pool.map(comes, range(3000)))


def test_cgroups_that_a_job_made_below_its_own_are_part_of_it(
    start_wrapper: StartWrapper, family: str
) -> None:
    seconds = unique_seconds()
    group = f"{family}/parent"
    assert cgroup.make(group)
    line = f"mkdir {group}/inner && echo $$ >{group}/inner/cgroup.procs && exec sleep {seconds}"
    job = start_wrapper("bash", "-c", line, group=group)
    sleep = started_sleep(seconds)
    assert sleep in cgroup.members(group)
    assert cgroup.is_populated(group)
    kill_all(job.tree)
    wait_until(lambda: not cgroup.is_populated(group))
    job.tree.dissolve()
    assert not Path(group).exists()


def test_a_cgroup_that_is_gone_is_an_empty_one() -> None:
    gone = "/sys/fs/cgroup/backburner.no/such"
    assert cgroup.members(gone) == []
    assert not cgroup.is_populated(gone)
    cgroup.kill(gone)
    cgroup.remove(gone)
