"""No call costs more because many tasks have ended: every statement finds its rows by an index.

Counted in steps of SQLite's virtual machine, which are the same on every machine, busy or not.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from backburner.model import clock
from backburner.model.channels import Channel, ChannelKind
from backburner.model.events import EventKind
from backburner.model.signals import SignalState
from backburner.model.states import ACTIVE, TERMINAL, Kind
from backburner.store.protocol import Facts
from backburner.store.sqlite.store import SqliteStore, open_store
from tests.store.conformance.making import (
    ADA,
    BOB,
    ENDINGS,
    EVERY_SESSION_OF_ADA,
    PLACE,
    PLENTY,
    ended,
    new_task,
    queued,
    running,
)
from tests.store.sqlite.conftest import BOOT, Open

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

FEW, MANY = 30, 1500
STEP = 10
"""The handler is called once in this many steps."""

Call = Callable[[SqliteStore], Awaitable[Any]]

CALLS: dict[str, Call] = {
    "get": lambda store: store.get("own", ADA),
    "find": lambda store: store.find("ow", ADA, 10),
    "newest": lambda store: store.newest(ADA, limit=10),
    "newest of the owner": lambda store: store.newest(EVERY_SESSION_OF_ADA, limit=10),
    "newest active": lambda store: store.newest(ADA, limit=10, states=ACTIVE),
    "newest active of the owner": lambda store: store.newest(
        EVERY_SESSION_OF_ADA, limit=10, states=ACTIVE
    ),
    "newest ended": lambda store: store.newest(ADA, limit=10, states=TERMINAL),
    "newest of another": lambda store: store.newest(BOB, limit=10),
    "active": lambda store: store.active(),
    "active shell": lambda store: store.active(Kind.SHELL),
    "kept": lambda store: store.kept(),
    "waiting": lambda store: store.waiting_for_keeper(),
    "next due": lambda store: store.next_due(),
    "events": lambda store: store.events("own"),
    "events since": lambda store: store.events_since(0, limit=10),
    "last event": lambda store: store.last_event(),
    "signals": lambda store: store.signals(ADA, limit=10),
    "signals of the owner": lambda store: store.signals(EVERY_SESSION_OF_ADA, limit=10),
    "signals of a task": lambda store: store.signals(ADA, task="over"),
    "signals pending": lambda store: store.signals(ADA, states=[SignalState.PENDING], limit=10),
    "prunable": lambda store: store.prunable(2**60, None, 10),
    "create": lambda store: store.create(new_task(), limit=PLENTY),
    "create again": lambda store: store.create(new_task("own"), limit=PLENTY),
    "finish": lambda store: store.finish("goes", 1, ENDINGS["exit"]),
    "claim": lambda store: store.claim("own", 1, PLACE),
    "stop": lambda store: store.request_stop("goes", ADA, 5.0),
    "note": lambda store: store.note("goes", 1, EventKind.DETAIL, Facts(detail="x")),
    "claim signals": lambda store: store.claim_signals(ADA, consumer="c", limit=5, lease_s=60),
    "acknowledge": lambda store: store.acknowledge(["over:end"], ADA),
    "acknowledge all sessions": lambda store: store.acknowledge(["over:end"], EVERY_SESSION_OF_ADA),
    "release": lambda store: store.release_signals("nobody"),
    "delivery failed": lambda store: store.delivery_failed("over:end", "no", clock.now()),
    "drop": lambda store: store.drop_signal("over:end", "no"),
    "claim deliveries": lambda store: store.claim_deliveries(consumer="c", limit=4, lease_s=60),
    "release deliveries": lambda store: store.release_deliveries(),
    "next delivery": lambda store: store.next_delivery(),
    "send again": lambda store: store.resend("over:end", ADA),
    "remove a channel": lambda store: store.remove_channel("hook", "ada"),
    "pause a channel": lambda store: store.pause_channel("hook", "ada", "x"),
    "wish": lambda store: store.wish(ADA, []),
    "forget": lambda store: store.forget(["over"]),
}


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Two records: one with few, one with many tasks that have ended and were not told of."""

    async def fill(home: Path, count: int) -> None:
        store = open_store(home, BOOT)
        ending = ENDINGS["spawn"]
        await asyncio.gather(
            *(store.create(new_task(), limit=PLENTY, ending=ending) for _ in range(count))
        )
        await store.add_channel(Channel("hook", "ada", None, ChannelKind.COMMAND, "cat"))
        await ended(store, "over")
        await running(store, "goes")
        await queued(store, "own")
        await store.close()

    made: dict[int, Path] = {}
    for count in (FEW, MANY):
        made[count] = tmp_path_factory.mktemp(f"cost{count}") / "home"
        asyncio.run(fill(made[count], count))
    return made


async def steps(store: SqliteStore, call: Call) -> int:
    """How much work SQLite has with a call. The handler is set from within, where it is counted."""
    count = 0

    def counted() -> bool:
        nonlocal count
        count += 1
        return False

    connections: list[apsw.Connection] = [
        store._read._connection,  # pyright: ignore[reportPrivateUsage]
        store._commits._connection,  # pyright: ignore[reportPrivateUsage]
    ]
    for connection in connections:
        connection.set_progress_handler(counted, STEP)
    try:
        await call(store)
    finally:
        for connection in connections:
            connection.set_progress_handler(None)
    return count * STEP


@pytest.mark.parametrize("name", CALLS)
async def test_x3_what_has_ended_makes_no_call_dearer(
    homes: dict[int, Path], open_here: Open, tmp_path: Path, name: str
) -> None:
    cost: dict[int, int] = {}
    for count, home in homes.items():
        copy = shutil.copytree(home, tmp_path / str(count))
        store = open_here(copy)
        cost[count] = await steps(store, CALLS[name])
    # Searching a tree that is fifty times as large takes a step or two more.
    assert cost[MANY] <= cost[FEW] * 1.5 + 100, cost
