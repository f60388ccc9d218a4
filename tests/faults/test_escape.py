"""X2: nothing outlives its stop. Jobs that try, one by one (issue 2, part 8).

Each with and without cgroups, and each also with the keeper killed -9 right before the stop.
Whether anything is left is read from /proc, by a number that only this job has in its arguments.
"""

import os
import random
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backburner import Backburner, Session, State, Task
from tests.faults.victims import (
    all_pids,
    arguments_of,
    is_running,
    kill,
    kill_all_of_ours,
    kill_keeper,
    unique_seconds,
)
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # each takes a second; there are many

PYTHON = f"{shlex.quote(sys.executable)} -S -c"

EVERYTHING_AT_ONCE = """
import os, signal, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
os.chdir("/")
os.closerange(0, 1024)
os.execve("/bin/sleep", ["innocent", sys.argv[1]], {})
"""

HOPPER = """
import os, time
while True:
    if os.fork():
        os._exit(0)
    time.sleep(0.001)
"""
"""Never the same process for longer than a moment."""

FORK_BOMB = """
bomb() {
    if [ "$1" -gt 0 ]; then
        bomb $(($1 - 1)) & bomb $(($1 - 1)) &
    else
        sleep NUMBER &
        while :; do (:); done &
    fi
    wait
}
bomb 4
"""
"""31 shells, 16 that sleep, 16 that fork without end: never more than some eighty at a time."""


@dataclass(frozen=True, slots=True)
class Artist:
    """A job that tries to outlive its stop."""

    line: str
    """NUMBER stands for how long its processes sleep; they are found by it."""
    sleepers: int = 1
    """So many processes sleep once it is under way."""
    ends: bool = False
    """The job itself ends well and at once, and leaves the rest behind."""
    suspended: bool = False
    """All of it is stopped, as by Ctrl-Z, the wrapper included; it is to hear TERM all the same."""
    grace: float = 0.3
    """Seconds; the impolite are not worth waiting for."""


ARTISTS = {
    "forks twice": Artist("( ( sleep NUMBER & ) & ); sleep NUMBER", sleepers=2),
    "forks twice, ends": Artist("( ( sleep NUMBER & ) & ); exit 0", ends=True),
    "ignores TERM": Artist("trap '' TERM; sleep NUMBER & sleep NUMBER", sleepers=2),
    "changes session": Artist("setsid sleep NUMBER & sleep NUMBER", sleepers=2),
    "clears environment": Artist("env -i setsid sleep NUMBER & exit 0", ends=True),
    "all of it": Artist(f"exec {PYTHON} {shlex.quote(EVERYTHING_AT_ONCE)} NUMBER", ends=True),
    "hops": Artist(f"exec {PYTHON} {shlex.quote(HOPPER)} NUMBER", sleepers=0, ends=True),
    "fork bomb": Artist(FORK_BOMB, sleepers=16),
    "is suspended": Artist(
        "trap 'echo heard it; exit' TERM; sleep NUMBER & wait", suspended=True, grace=30
    ),
}


@pytest.fixture(params=[True, False], ids=["with cgroups", "without cgroups"])
def cgroups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the keeper, which inherits this, may use them."""
    monkeypatch.setenv("BACKBURNER_CGROUPS", str(int(request.param)))
    return request.param


@pytest.fixture(params=[False, True], ids=["keeper alive", "keeper killed"])
def before_stop(request: pytest.FixtureRequest, home: Path) -> Iterator[Callable[[], object]]:
    """What happens right before the stop."""
    yield (lambda: kill_keeper(home)) if request.param else (lambda: None)
    kill_all_of_ours(home)  # they would go by themselves within a second, which is not the subject


@pytest.fixture
def number() -> Iterator[str]:
    """How long the processes of this test sleep; one that got away does not go on to do so."""
    number = unique_seconds()
    yield number
    kill(*mentioning(number))


@pytest.fixture
def port() -> Iterator[int]:
    """A port that nobody listens on; nor does anybody when the test has failed."""
    # Not one that the system gives out: it might give it to another before the job has it.
    port = random.randrange(10_000, 30_000)
    while listens(port):
        port = random.randrange(10_000, 30_000)
    yield port
    kill(*mentioning(f":{port}"))


@pytest.fixture
def bystander() -> Iterator[None]:
    """A process of nobody's task, which has to live."""
    process = subprocess.Popen(["sleep", unique_seconds()], start_new_session=True)
    yield
    alive = is_running(process.pid)
    process.kill()
    process.wait()
    assert alive, "an innocent process was ended"


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("name", ARTISTS)
async def test_x2_stop_ends_a_job_that(
    name: str, number: str, home: Path, cgroups: bool, before_stop: Callable[[], object]
) -> None:
    """X2: stop ends every descendant, whatever it did to get away."""
    artist = ARTISTS[name]
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(artist.line.replace("NUMBER", number))
        await under_way(task, artist, number)
        check_cgroup(task, cgroups)
        before_stop()
        await task.stop(grace=artist.grace)
        assert mentioning(number) == []
        check_record(task, State.SUCCEEDED if artist.ends else State.CANCELED)
        if artist.suspended:
            assert (await task.output()).text == "heard it\n"
        await nothing_follows(bb.session("s"), task)


@pytest.mark.usefixtures("bystander")
async def test_x2_stop_ends_a_daemon_that_rewrote_its_title(
    home: Path,
    cgroups: bool,
    before_stop: Callable[[], object],
    redis_server: Path,
    port: int,
) -> None:
    """X2: `redis-server --daemonize yes` loses session, parent, descriptors and environment."""
    folder = str(home.parent)
    command = [str(redis_server), "--daemonize", "yes", "--port", str(port), "--save", ""]
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run([*command, "--dir", folder, "--pidfile", f"{folder}/pid"])
        await task.wait(timeout=30)
        assert (task.state, task.exit_code) == (State.SUCCEEDED, 0), (await task.output()).text
        await wait_until_async(lambda: listens(port), message="redis-server does not listen")
        await wait_until_async(lambda: len(mentioning(f":{port}")) == 1)
        assert task.record.leftovers == 1
        check_cgroup(task, cgroups)
        before_stop()
        await task.stop()
        assert mentioning(f":{port}") == []
        assert not listens(port)
        check_record(task, State.SUCCEEDED)
        await nothing_follows(bb.session("s"), task)


async def under_way(task: Task, artist: Artist, number: str) -> None:
    """Until the job is where it wants to be."""
    await wait_until_async(
        lambda: len(sleeping(number)) >= artist.sleepers,
        message=lambda: f"only {len(sleeping(number))} of {artist.sleepers} sleep",
    )
    if artist.suspended:
        for pid in mentioning(number):
            os.kill(pid, signal.SIGSTOP)
        await wait_until_async(lambda: {state_of(pid) for pid in mentioning(number)} == {"T"})
    if artist.ends:
        await task.wait(timeout=30)
        assert task.state is State.SUCCEEDED
        assert task.record.leftovers >= 1, "it left something behind, and nobody noticed"
    else:
        await wait_until_async(lambda: started(task))


async def started(task: Task) -> bool:
    """Whether the record says so; the claim is on disk before the job runs."""
    return (await task.refresh()).state is State.RUNNING


def check_cgroup(task: Task, cgroups: bool) -> None:
    """The case under test is the one that was asked for, where this machine has cgroups."""
    assert task.record.place is not None
    used = task.record.place.cgroup is not None
    assert used == (cgroups and may_make_cgroups())


def check_record(task: Task, state: State) -> None:
    """A4: one that had ended keeps its record; nothing is left, not even a cgroup."""
    assert (task.state, task.record.leftovers) == (state, 0)
    assert task.record.place is not None
    assert task.record.place.cgroup is None or not os.path.exists(task.record.place.cgroup)


async def nothing_follows(session: Session, task: Task) -> None:
    """E10, X1: the record is final, and the session is told once."""
    before = task.record
    assert (await task.stop()).record == before
    assert [told.task for told in await session.told()] == [task.id]


def mentioning(text: str) -> list[int]:
    """Every process with this text in its arguments; the job's wrapper is one too."""
    return [pid for pid in all_pids() if any(text in each for each in arguments_of(pid))]


def sleeping(number: str) -> list[int]:
    """The processes that sleep for so long."""
    return [pid for pid in all_pids() if arguments_of(pid)[1:] == [number]]


def state_of(pid: int) -> str:
    """As in `ps`: T is stopped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat[stat.rindex(")") + 2]


def may_make_cgroups() -> bool:
    """Whether there is a hierarchy of version 2 in which we may do as we like."""
    own = Path("/proc/self/cgroup").read_text().splitlines()
    path = next((line[3:] for line in own if line.startswith("0::")), None)
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    place = next((line.split()[4] for line in mounts if " - cgroup2 " in line), None)
    return None not in (path, place) and os.access(f"{place}{path}/cgroup.procs", os.W_OK)


def listens(port: int) -> bool:
    """Whether somebody answers."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
