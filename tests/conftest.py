"""What every test gets: an environment without traces of ours, homes of its own, a leak check.

A test that takes `home` must leave nothing: after it the home folder is removed, and whatever
belonged to it (keeper, guardian, jobs) has to go by itself.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from tests import leftovers, pgbouncer, postgres_server
from tests import nursery as nurseries
from tests.nursery import Nursery
from tests.waiting import wait_until

TIME_TO_LEAVE = 30.0
"""Seconds for a keeper to notice that its home is gone and to end its jobs, grace included."""

REPOSITORY = Path(__file__).resolve().parent.parent

MEMORY = "/dev/shm"
ROOM = 6 * 1024**3
"""Bytes that the temporary files of the whole suite fit in, with much to spare."""


def _use_memory() -> None:
    """Temporary files lie in memory where there is room.

    No test takes the power from the machine, and a home that is made, closed and removed waits for
    a disk for longer than most tests take.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    room = min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available)
    if room > ROOM:
        os.environ["TMPDIR"] = MEMORY
        tempfile.tempdir = None  # pytest has looked already


_use_memory()

# A runner that was started in the background ignores Ctrl-C, and so would every program it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline for one example: the suite has to pass on a busy machine too.
settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")


_WITH_SERVERS = ("tests/gateway/", "tests/nodes/", "tests/store/postgres/")
"""Short ones, and hundreds: with a server of Postgres or of a chat each, they take minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep them out of the quick suite; what they have in common with others is tested there."""
    for item in items:
        if item.nodeid.startswith(_WITH_SERVERS) or "[postgres" in item.nodeid:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def own_server() -> Iterator[postgres_server.Server]:
    """A database server that may be killed."""
    server = postgres_server.Server()
    yield server
    server.close()


@pytest.fixture(scope="session", autouse=True)
def nothing_outlives_the_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The net below the check of each home: no process of any test is left at the end."""
    base = tmp_path_factory.getbasetemp()
    yield
    _expect_gone(base, leftovers.strangers_of)


@pytest.fixture(scope="session", autouse=True)
def no_database_outlives_the_run() -> Iterator[None]:
    """Where a test has asked for one, or for a pooler before it."""
    yield
    pgbouncer.close()
    postgres_server.close()


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No BACKBURNER_* from outside; who asks for no home does not get the developer's own."""
    for name in [name for name in os.environ if name.startswith("BACKBURNER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.fixture
def new_home(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Makes a fresh home on each call; afterwards nothing of any of them may be left."""
    homes: list[Path] = []

    def make() -> Path:
        home = tmp_path / f"h{len(homes)}"
        home.mkdir(mode=0o700)
        homes.append(home)
        return home

    yield make

    problems: list[str] = []
    for home in homes:
        try:
            _let_go(home)
        except AssertionError as failure:  # look at the other homes all the same
            problems.append(str(failure))
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


@pytest.fixture
def home(
    new_home: Callable[[], Path], clean_environment: None, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A fresh home, which the environment names, with a session of its own."""
    path = new_home()
    monkeypatch.setenv("BACKBURNER_HOME", str(path))
    monkeypatch.setenv("BACKBURNER_SESSION", "test")
    return path


@pytest.fixture(scope="session", autouse=True)
def no_nursery_outlives_the_run() -> Iterator[None]:
    """Where a test has asked for one."""
    yield
    nurseries.close()


@pytest.fixture
def nursery() -> Nursery:
    """Where runs of the command line come from."""
    return nurseries.nursery()


@pytest.fixture(scope="session")
def redis_server() -> Path:
    """The redis-server program: a real daemon to run as a job."""
    program = shutil.which("redis-server", path=f"{REPOSITORY}/.services/bin:{os.environ['PATH']}")
    if program is None:
        pytest.fail("redis-server is missing: run `make services`, or install that package")
    return Path(program)


def _let_go(home: Path) -> None:
    """Remove `home`, then expect everything that belonged to it to leave."""

    shutil.rmtree(home, ignore_errors=True)  # of many thousand tasks takes longer than to leave
    _expect_gone(home, leftovers.processes_of, removed=True)


def _expect_gone(
    folder: Path, belonging: Callable[[Path], list[leftovers.Leftover]], *, removed: bool = False
) -> None:
    __tracebackhide__ = True
    left: list[str] = []

    def is_gone() -> bool:
        found = belonging(folder)
        left[:] = map(str, found)
        # To look at every process costs more than most of them need to end.
        leftovers.until_ended(found, 1)
        if removed and folder.exists():
            # Again and again: a keeper that writes at this moment can put a file in the way.
            shutil.rmtree(folder, ignore_errors=True)
            left.append(f"the folder {folder} could not be removed")
        return not left

    try:
        wait_until(
            is_gone,
            timeout=TIME_TO_LEAVE,
            message=lambda: "left behind:\n  " + "\n  ".join(left),
        )
    except AssertionError:
        # One leak must not disturb the tests that follow; a guardian starts its keeper again.
        wait_until(lambda: not leftovers.end_once(folder), message=f"{folder}: cannot be ended")
        raise
