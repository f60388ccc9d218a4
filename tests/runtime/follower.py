"""A follower of a session that can be killed: says each key that it was given, and never ends.

python -m tests.runtime.follower HOME SESSION
"""

import asyncio
import sys

from backburner import Backburner, Signal
from backburner.runtime.feed import Feed
from backburner.runtime.signals import SignalService

LEASE_S = 1.5


async def main(home: str, session: str) -> None:
    """Take what there is, and think about it for ever."""

    async def think(told: list[Signal]) -> None:
        for signal in told:
            print(signal.key, flush=True)
        await asyncio.Event().wait()

    async with Backburner.open(home) as bb:
        bb.inbox = SignalService(bb.store, Feed(bb.store), lease_s=LEASE_S)
        async with bb.session(session).follow_up(think, batch_s=0):
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
