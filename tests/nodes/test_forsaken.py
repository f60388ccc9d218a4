"""X2: a machine whose claim failed leaves alone what another one has begun since."""

import asyncio
from pathlib import Path

import pytest

from backburner.model import clock
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.states import State
from backburner.model.task import Place
from backburner.runtime.worker import ProcessWorker
from backburner.store.engine import Job
from backburner.store.postgres.node import open_node
from backburner.work.process.identity import boot_id
from tests import postgres_server
from tests.store.conformance.making import PLENTY, get, new_task


@pytest.mark.parametrize("here", [True, False], ids=["same boot", "other boot"])
async def test_x2_what_another_machine_has_begun_since_is_not_adopted(
    tmp_path: Path, here: bool
) -> None:
    address = postgres_server.server().create()
    one, other = await open_node(address, "nd_one"), await open_node(address, "nd_other")
    await one.create(new_task("bg_moved", spec={"command": "x", "log": [1, 1]}), limit=PLENTY)
    await other.take(Job("bg_moved", 1))
    boot = boot_id() if here else "another-boot"
    assert await other.claim("bg_moved", 1, Place(boot, clock.boot_now(), 4711)) is not None
    worker = ProcessWorker(one, Home(tmp_path, address), Settings(), print)
    getattr(worker, "_forsaken").add("bg_moved")  # noqa: B009 - as after a claim that failed
    for _ in range(2):
        looking = asyncio.create_task(worker.work())
        await asyncio.wait([looking], timeout=0.5)
        looking.cancel()
        await asyncio.wait([looking])
    task = await get(one, "bg_moved")
    assert (task.state, task.attempt) == (State.RUNNING, 1)
    await worker.close()
    await one.close()
    await other.close()
