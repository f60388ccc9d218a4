"""X10: a worker needs nobody who reads what it says."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psycopg
import pytest

from tests.cli.program import Program
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow]

Started = tuple["subprocess.Popen[bytes]", IO[bytes]]


@pytest.fixture
def worker(home: Path, address: str) -> Iterator[Started]:
    """A process of its own: Python says at its end what could not be written, and so what we lost.

    And what it has said, which goes where somebody may leave.
    """
    words = ["-m", "backburner.cli", "worker", "--home", str(home / "node"), "--database", address]
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE)
    messages = process.stderr
    assert messages is not None
    with contextlib.ExitStack() as ends, messages:
        ends.callback(process.wait)
        ends.callback(process.kill)
        while b"takes on" not in messages.readline():
            assert process.poll() is None
        yield process, messages


def test_x10_a_worker_whose_messages_nobody_reads_finishes_what_it_has(
    worker: Started, backburner: Program, address: str, tmp_path: Path
) -> None:
    process, messages = worker
    waits = f"touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done"
    task = backburner("run", "--", waits).id
    wait_until((tmp_path / "began").exists)
    messages.close()
    process.send_signal(signal.SIGTERM)
    with psycopg.connect(address, autocommit=True) as record:

        def drains() -> bool:
            return (True,) in record.execute("SELECT draining FROM backburner.node").fetchall()

        wait_until(drains)
    (tmp_path / "go").touch()
    assert process.wait(60) == 0
    assert backburner("show", "--json", task).json["state"] == "succeeded"


def test_x10_a_worker_whose_messages_nobody_reads_leaves_when_it_has_nothing(
    worker: Started,
) -> None:
    process, messages = worker
    messages.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
