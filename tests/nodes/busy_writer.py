"""Writes to a shared record without a pause, or holds the lock of the writers; to be cut off.

python -m tests.nodes.busy_writer ADDRESS [hold]
"""

import asyncio
import sys
import time

from backburner import Backburner, SignalKind
from backburner.store.postgres.store import open_store


async def write(address: str) -> None:
    """A line for each commit."""
    async with Backburner.open(address) as bb:
        session = bb.session("busy")
        while True:
            await bb.store.wish(session.scope, [SignalKind.COMPLETED])
            print("written", flush=True)


async def hold(address: str) -> None:
    """With the lock that outlives a commit: somebody removes files meanwhile."""
    store = await open_store(address)

    def stay(_: object) -> None:
        print("holds", flush=True)
        time.sleep(600)  # noqa: TID251 - whoever cuts it off kills it

    await store.unknown(["bg_1"], stay)


if __name__ == "__main__":
    asyncio.run(hold(sys.argv[1]) if sys.argv[2:] else write(sys.argv[1]))
