"""An application that starts a run and waits to be killed.

    python -m tests.runtime.runs.application HOME TOOL ARGUMENTS

Prints the id of its run.
"""

import asyncio
import json
import sys

from backburner import Backburner, Context
from tests.runtime.runs import crawler


async def main(home: str, tool: str, arguments: str) -> None:
    """Spawn one run, and stay."""
    bb = Backburner.open(home)
    bb.registry.add_module(crawler)

    @bb.tool(background=True, idempotent=True)
    async def closure(context: Context, folder: str) -> int:
        return await crawler.count_up(context, folder)

    @bb.tool(background=True, idempotent=True)
    async def with_secret(folder: str, api_key: str) -> None:
        await crawler.only_once(folder)

    async with bb:
        task = await bb.session("s").spawn(tool, json.loads(arguments))
        print(task.id, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
