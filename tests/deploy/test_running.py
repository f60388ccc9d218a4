"""X10: what the Compose file and the manifests say is run as they say, and passes their probes."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deploy.containers import (
    PASSWORD,
    Container,
    Running,
    from_compose,
    from_kubernetes,
)
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow]

DESCRIBED = {"compose": from_compose, "kubernetes": from_kubernetes}


@pytest.fixture(params=DESCRIBED)
def described(request: pytest.FixtureRequest) -> dict[str, Container]:
    return DESCRIBED[request.param]()


@pytest.fixture
def start(
    described: dict[str, Container], address: str, new_home: Callable[[], Path]
) -> Iterator[Callable[[str], Running]]:
    started: list[Running] = []

    def start_one(name: str) -> Running:
        started.append(Running(described[name], address, new_home()))
        return started[-1]

    yield start_one
    for each in started:
        each.stop()


def backburner(at: Running, *words: str) -> str:
    """As `docker compose exec` and `kubectl exec` would."""
    done = subprocess.run(
        [sys.executable, "-m", "backburner.cli", *words],
        env=at.environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert PASSWORD not in done.stdout + done.stderr
    return done.stdout


def test_x10_a_worker_passes_its_probes_and_drains_when_it_is_told_to_stop(
    start: Callable[[str], Running], tmp_path: Path, described: dict[str, Container]
) -> None:
    migrate = start("migrate")
    migrate.until_done()
    assert PASSWORD not in migrate.log.read_text()
    start("migrate").until_done()  # they start it again, whatever became of the first
    worker = start("worker")
    worker.until_ready()
    go = tmp_path / "go"
    waits = f"touch {tmp_path}/began; while [ ! -e {go} ]; do sleep 0.05; done; echo finished"
    task = backburner(worker, "run", "--cwd", str(tmp_path), "--", waits).strip()
    wait_until((tmp_path / "began").exists)
    worker.process.terminate()
    wait_until(lambda: not worker.passes("ready"))
    assert worker.process.poll() is None, "it has something to finish"
    if "live" in described["worker"].probes:
        assert worker.passes("live"), "or it would be killed in the middle"
    go.touch()
    assert worker.process.wait(described["worker"].grace_s) == 0, worker.log.read_text()
    assert "finished" in backburner(worker, "logs", task)
    assert PASSWORD not in worker.log.read_text()


def test_x10_the_server_is_ready_and_starts_what_a_worker_carries_out(
    start: Callable[[str], Running], described: dict[str, Container]
) -> None:
    start("migrate").until_done()
    worker, server = start("worker"), start("serve")
    worker.until_ready()
    if "ready" in described["serve"].probes:
        server.until_ready()
    else:
        wait_until(lambda: "serving at" in server.log.read_text(), message=server.log.read_text)
    assert backburner(server, "run", "--wait", "--", "echo by a worker") == "by a worker\n"
    assert backburner(server, "token", "create").strip()
    assert server.stop() < described["serve"].grace_s
    assert server.process.returncode == 0, server.log.read_text()
