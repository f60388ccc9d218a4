"""The waiting process of `ending`: prints each signal of a session with the time it came.

`python -m bench.consumer HOME SESSION`. One line a signal: the task's id and nanoseconds since
the epoch, taken before the acknowledgement and printed after it.
"""

import asyncio
import sys
import time

from backburner import Backburner


async def consume(home: str, session: str) -> None:
    """Until it is killed."""
    async with Backburner.open(home) as bb:
        print("ready", flush=True)
        async for signal in bb.session(session).signals():
            came = time.time_ns()
            await signal.ack()
            print(signal.task, came, flush=True)


if __name__ == "__main__":
    asyncio.run(consume(*sys.argv[1:]))
