"""A consumer of signals that can be killed: says each key that it was given, and acknowledges none.

python -m tests.runtime.consumer HOME SESSION
"""

import asyncio
import sys

from backburner import Backburner
from backburner.runtime.feed import Feed
from backburner.runtime.signals import SignalService

LEASE_S = 1.5


async def main(home: str, session: str) -> None:
    """Take what there is, and hold it."""
    async with Backburner.open(home) as bb:
        bb.inbox = SignalService(bb.store, Feed(bb.store), lease_s=LEASE_S)
        async for signal in bb.session(session).signals():
            print(signal.key, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
