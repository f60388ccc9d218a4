"""The moment between a write that is on disk and the news of it, which a busy machine makes long.

The event loop takes one step at a time and stands still in between, so that what is written
meanwhile is heard of by nobody.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.store.raw import Raw

_STEP_S = 0.005
_LONGEST_S = 30.0


def in_record(home: Path, query: str) -> bool:
    """Whether a query finds something, asked beside the store."""
    with Raw(home / "backburner.db") as raw:
        return bool(raw(query))


async def until_unheard(written: Callable[[], bool]) -> None:
    """Until it is on disk; who wrote it has not been told so."""
    deadline = time.monotonic() + _LONGEST_S
    while not written():
        if time.monotonic() > deadline:
            pytest.fail("it was never written")
        await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
        time.sleep(_STEP_S)  # noqa: ASYNC251, TID251 - and now it stands still


async def cancel_unheard(work: Coroutine[Any, Any, object], written: Callable[[], bool]) -> None:
    """Begin it, and cancel it when what it writes is on disk."""
    working = asyncio.create_task(work)
    await until_unheard(written)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
