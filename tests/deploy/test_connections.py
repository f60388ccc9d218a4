"""X10: what runs as the files of `deploy/` say has no more connections than they count with."""

import asyncio
import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psycopg
import pytest

from backburner import Backburner
from backburner.store.postgres.footprint import APPLICATION, PROGRAM, WORKER
from tests.cli.program import COMMAND
from tests.deploy.containers import Running, from_kubernetes

pytestmark = [pytest.mark.slow]

OWNERS = [f"owner-{number}" for number in range(6)]
_MOST = """SELECT application_name, count(*) FROM pg_stat_activity
    WHERE datname = current_database() GROUP BY application_name"""


@contextmanager
def counting(address: str) -> Generator[Counter[str]]:
    """The most that each had at once, by name."""
    most: Counter[str] = Counter()
    done = threading.Event()

    def count() -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            while not done.wait(0.01):
                for name, number in connection.execute(_MOST).fetchall():
                    most[name] = max(most[name], number)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield most
    finally:
        done.set()
        thread.join()


@pytest.fixture
def start(address: str, new_home: Callable[[], Path]) -> Generator[Callable[[str], Running]]:
    """Its connections have its name."""
    started: list[Running] = []

    def start_one(name: str) -> Running:
        at = f"{address}?application_name={name}"
        started.append(Running(from_kubernetes()[name], at, new_home()))
        return started[-1]

    yield start_one
    for each in started:
        each.stop()


def _token(server: Running, address: str, owner: str) -> str:
    done = subprocess.run(
        [*COMMAND, "token", "create", "--owner", owner, "--json"],
        env={**server.environment, "BACKBURNER_HOME": address}, capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    return json.loads(done.stdout)["token"]


async def _asked(server: Running, token: str, until: asyncio.Event) -> int:
    """Ask it for all that it has, again and again; how often."""
    count = 0
    async with httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{server.port}",
        headers={"Authorization": f"Bearer {token}", "Host": "backburner.example"},
        timeout=60,
    ) as client:
        while not until.is_set():
            for path in ("tasks", "sessions", "queues", "workers"):
                answer = await client.get(f"/v1/{path}")
                assert answer.status_code == 200, answer.text
                count += 1
    return count


async def _much_is_done(address: str, server: Running, tokens: list[str]) -> None:
    done = asyncio.Event()
    asking = [asyncio.create_task(_asked(server, token, done)) for token in tokens * 3]
    async with Backburner.open(f"{address}?application_name=program") as bb:
        sessions = [bb.session("chat", owner=owner) for owner in OWNERS]
        tasks = await asyncio.gather(*(s.run("echo done") for s in sessions for _ in range(12)))
        await asyncio.gather(*(task.wait(timeout=100) for task in tasks))
        said = await asyncio.gather(*(task.output() for task in tasks))
        assert {each.text for each in said} == {"done\n"}
    done.set()
    assert all([await each for each in asking])


@pytest.mark.timeout(240)
async def test_x10_a_busy_worker_and_a_busy_server_take_no_more_than_is_counted(
    start: Callable[[str], Running], address: str, home: Path
) -> None:
    start("migrate").until_done()
    worker, server = start("worker"), start("serve")
    worker.until_ready()
    server.until_ready()
    tokens = [_token(server, address, owner) for owner in OWNERS]
    with counting(address) as most:
        await _much_is_done(address, server, tokens)
    for name, bound in {"worker": WORKER, "serve": APPLICATION, "program": PROGRAM}.items():
        assert 1 < most[name] <= bound, most
