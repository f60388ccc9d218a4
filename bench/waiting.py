"""Waiting for a condition outside of what is measured: the one place here that polls."""

import asyncio
import time
from collections.abc import Awaitable, Callable

_NAP_S = 0.05


async def until(
    condition: Callable[[], Awaitable[bool]], *, what: str, nap: float = _NAP_S, limit: float = 300
) -> None:
    """Look again and again until it is so; RuntimeError after ``limit`` seconds."""
    deadline = time.monotonic() + limit
    while not await condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not so after {limit:g} s")
        await asyncio.sleep(nap)
