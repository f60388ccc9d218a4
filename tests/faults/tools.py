"""Tools of the workers of a campaign, for `backburner worker --tools tests.faults.tools`.

Each notes that it runs, as the functions do; the mark says in which process.
"""

import asyncio
import contextlib
import os
from pathlib import Path

from backburner import tool

BRIEFLY_S = 0.3


@tool(background=True, idempotent=True)
async def brief_again(ran: str, seconds: str) -> str:
    """May be taken up again."""
    return await _briefly(ran, seconds)


@tool(background=True)
async def brief_once(ran: str, seconds: str) -> str:
    """May not."""
    return await _briefly(ran, seconds)


@tool(background=True, idempotent=True)
async def endless_again(ran: str, seconds: str) -> None:
    """Somebody has to stop it, wherever it is by then."""
    await _endlessly(ran, seconds)


@tool(background=True)
async def endless_once(ran: str, seconds: str) -> None:
    """Somebody has to stop it."""
    await _endlessly(ran, seconds)


async def _briefly(ran: str, seconds: str) -> str:
    _note(ran)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(BRIEFLY_S):
            await _asleep(seconds)
    return seconds


async def _endlessly(ran: str, seconds: str) -> None:
    _note(ran)
    await _asleep(seconds)


async def _asleep(seconds: str) -> None:
    """A process shows for how long the tool goes on: it ends with it, and with its worker."""
    asleep = await asyncio.create_subprocess_exec(
        "setpriv", "--pdeathsig", "KILL", "sleep", seconds
    )
    try:
        await asleep.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            asleep.kill()
        await asleep.wait()


def _note(ran: str) -> None:
    with Path(ran).open("a") as file:
        file.write(f"ran-{os.getpid()}\n")
