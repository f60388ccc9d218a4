"""A gateway to the chat server for tests, as a process of its own that can be killed."""

import asyncio
import sys

from backburner import Backburner
from backburner.gateway.desk import Rights
from backburner.gateway.gateway import Setup, serve
from backburner.gateway.people import Guests
from backburner.gateway.posting import Pace
from tests.gateway.line_platform import LinePlatform


async def main(path: str, agent: str) -> None:
    setup = Setup(Rights(jobs=True), agent or None, pace=Pace(every_s=0.0), edit_every_s=0.05)
    async with Backburner.open() as backburner:
        await serve(backburner, LinePlatform(path), Guests("line", ["ada", "bob"]), setup)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
