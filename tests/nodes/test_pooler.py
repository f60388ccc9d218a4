"""X10: behind PgBouncer. A pool of sessions works; one of transactions is refused in a sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.model.errors import StoreUnusable
from backburner.model.states import State
from tests.nodes.workers import WorkerProcess
from tests.pgbouncer import pgbouncer

pytestmark = [pytest.mark.slow]


async def test_x10_in_session_mode_programs_and_workers_go_on_as_without_it(
    address: str, home: Path, new_home: Callable[[], Path], tmp_path: Path
) -> None:
    with pgbouncer(address, "session", tmp_path) as pooled:
        worker = WorkerProcess(pooled, new_home())
        try:
            async with Backburner.open(pooled) as bb:
                session = bb.session("chat")
                task = await session.run("echo through the pool")
                await task.wait(timeout=60)
                assert task.state is State.SUCCEEDED
                assert (await task.output()).text == "through the pool\n"
                stopped = await session.run("sleep 1000")
                await stopped.stop()
                assert stopped.state is State.CANCELED
        finally:
            worker.leave()


async def test_x10_in_transaction_mode_it_is_refused(
    address: str, home: Path, tmp_path: Path
) -> None:
    with pgbouncer(address, "transaction", tmp_path) as pooled:
        for _ in range(2):  # also when it was tried before
            with pytest.raises(StoreUnusable, match=r"transaction mode.*pool_mode=session"):
                async with Backburner.open(pooled):
                    pass
