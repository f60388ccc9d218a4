"""Tools that another process can import, for the tests of runs whose application dies."""

import asyncio
import pathlib
import time

from backburner import Context, tool


@tool(background=True, idempotent=True)
async def count_up(context: Context, folder: str, wait: bool = True) -> int:
    """Leave a mark for each time it is begun; the first waits to be killed."""
    began = len(list(pathlib.Path(folder).glob("began-*"))) + 1
    context.output("stdout", f"began {began}\n")
    pathlib.Path(folder, f"began-{time.time_ns()}").touch()
    if wait and began == 1:
        await asyncio.Event().wait()
    return began


@tool(background=True)
async def only_once(folder: str) -> None:
    """Leave a mark, and wait to be killed."""
    pathlib.Path(folder, f"began-{time.time_ns()}").touch()
    await asyncio.Event().wait()
