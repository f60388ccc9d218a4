"""X10: a worker says whether it takes tasks on, and its numbers, to who asks at --listen."""

import http.client
import re
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families
from psycopg.conninfo import conninfo_to_dict

from backburner import Backburner
from backburner.model.errors import UsageError
from backburner.runtime.probes import Door
from tests import postgres_server
from tests.nodes.conftest import NewWorker
from tests.nodes.workers import WorkerProcess
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]


class Probe:
    """Asks a worker as Kubernetes and Prometheus do."""

    def __init__(self, worker: WorkerProcess) -> None:
        found = re.search(r"answers at (\S+)/readyz", worker.said())
        assert found is not None, worker.said()
        self._port = urlsplit(found[1]).port

    def ask(self, path: str, method: str = "GET") -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def is_ready(self) -> bool:
        return self.ask("/readyz")[0] == 200

    def number(self, name: str, **labels: str) -> float | None:
        _, text = self.ask("/metrics")
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return sample.value
        return None


async def test_x10_a_worker_is_ready_while_it_takes_tasks_on_and_not_while_it_drains(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    worker = new_worker("--listen", "0")
    probe = Probe(worker)
    await wait_until_async(probe.is_ready)
    go = tmp_path / "go"
    session = shared.session("chat")
    task = await session.run(f"touch {tmp_path}/began; while [ ! -e {go} ]; do sleep 0.1; done")
    failed = await session.run("exit 1")
    await failed.wait(timeout=60)
    await wait_until_async((tmp_path / "began").exists)
    assert probe.number("backburner_worker_places") == 8
    assert probe.number("backburner_worker_taken_total") == 2
    await wait_until_async(
        lambda: probe.number("backburner_worker_ended_total", kind="shell", state="failed") == 1
    )
    await wait_until_async(
        lambda: probe.number("backburner_worker_tasks", kind="shell", state="running") == 1
    )
    assert probe.number("backburner_queue_tasks", queue="default", state="running") == 1
    age = probe.number("backburner_worker_heartbeat_age_seconds")
    assert age is not None
    assert age >= 0
    worker.drain()
    await wait_until_async(lambda: not probe.is_ready())
    assert probe.ask("/readyz") == (503, "not ready: it takes on nothing more\n")
    assert probe.ask("/healthz") == (200, "ok\n")
    go.touch()
    await task.wait(timeout=60)


async def test_x10_a_worker_without_its_database_lives_and_is_not_ready(
    new_worker: NewWorker, address: str
) -> None:
    worker = new_worker("--listen", "0")
    probe = Probe(worker)
    await wait_until_async(probe.is_ready)
    name = conninfo_to_dict(address)["dbname"]
    server = postgres_server.server()
    server.run(f"ALTER DATABASE {name} CONNECTION LIMIT 0 ALLOW_CONNECTIONS false")
    server.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    await wait_until_async(lambda: not probe.is_ready(), timeout=60)
    assert probe.ask("/healthz")[0] == 200
    await wait_until_async(lambda: probe.number("backburner_worker_database_up") == 0, timeout=60)
    server.run(f"ALTER DATABASE {name} CONNECTION LIMIT -1 ALLOW_CONNECTIONS true")
    await wait_until_async(probe.is_ready, timeout=60)
    assert worker.process.poll() is None


async def test_what_is_sent_to_it_is_bounded_and_it_stays_on_this_machine(
    new_worker: NewWorker,
) -> None:
    worker = new_worker("--listen", "0")
    probe = Probe(worker)
    assert "http://127.0.0.1:" in worker.said()
    assert probe.ask("/readyz", "POST")[0] == 405
    assert probe.ask("/../etc/passwd")[0] == 404
    found = re.search(r"answers at http://127.0.0.1:(\d+)", worker.said())
    assert found is not None
    with socket.create_connection(("127.0.0.1", int(found[1])), timeout=30) as hostile:
        hostile.sendall(b"GET /" + b"a" * 100_000)
        assert hostile.recv(1024) == b""
    silent = [socket.create_connection(("127.0.0.1", int(found[1]))) for _ in range(80)]
    await wait_until_async(lambda: _answers(probe), timeout=60)
    for each in silent:
        each.close()


def _answers(probe: Probe) -> bool:
    try:
        return probe.ask("/healthz")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


@pytest.mark.parametrize("text", ["", "x", "localhost:", "127.0.0.1:99999", "[::1]"])
def test_nowhere_to_listen_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="9464"):
        Door.of(text)


def test_a_port_alone_is_one_of_this_machine() -> None:
    assert Door.of("9464") == Door("127.0.0.1", 9464)
    assert Door.of("[::]:9464") == Door("::", 9464)


def test_a_port_that_is_taken_is_said_in_a_sentence(
    address: str, new_home: Callable[[], Path]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AssertionError, match=f"127.0.0.1:{port} cannot be listened at"):
            WorkerProcess(address, new_home(), "--listen", str(port))
