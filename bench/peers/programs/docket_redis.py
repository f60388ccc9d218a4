# pyright: basic, reportMissingImports=false
"""Docket on Redis: a worker for each core with 64 tasks at once; one, or the usual 10, is slower.

Finished means acknowledged: the message is gone from the stream, and the result is in its store.
"""

import asyncio

from docket import Docket

from bench.peers.programs.rounds import CALLERS, CORES, PLACE, measure_async, worker


async def noop() -> bool:
    """Do nothing."""
    return True


tasks = [noop]


def main(count: int) -> None:
    """One round."""
    asyncio.run(_round(count))


async def _round(count: int) -> None:
    async with Docket(name="bench", url=PLACE) as docket:
        docket.register(noop)

        async def submit(_: int) -> None:
            await docket.add(noop)()

        async def finished(_: int) -> bool:
            async with docket.redis() as redis:
                return await redis.xlen(docket.stream_key) == 0

        place = ("--docket", "bench", "--url", PLACE, "--tasks", f"{__name__}:tasks")
        options = ("--concurrency", str(CALLERS), "--logging-level", "WARNING")
        with worker("docket", "worker", *place, *options, processes=CORES):
            await measure_async(count, submit, finished)
