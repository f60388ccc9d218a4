"""Being the only one on all machines that share a record: a gateway to a chat platform is."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from backburner.model.errors import Conflict
from backburner.model.home import Home

_LOOK_EVERY_S = 5.0


@contextlib.asynccontextmanager
async def sole(home: Home, what: str) -> AsyncGenerator[None]:
    """While the block lasts nobody else is this, where many machines share the record.

    Conflict where somebody is; also in the middle of the block, where the connection was lost and
    somebody else has become it.
    """
    if not home.shared:
        yield  # a lock in the folder is enough
        return
    from backburner.store.postgres.connection import explained  # an extra
    from backburner.store.postgres.sole import Sole

    place = Sole(home.address, what)
    with explained():
        taken = await asyncio.to_thread(place.take)
    if not taken:
        raise _taken(what)
    ours = asyncio.current_task()
    assert ours is not None
    lost = False

    async def watch() -> None:
        nonlocal lost
        while not lost:
            await asyncio.sleep(_LOOK_EVERY_S)
            with contextlib.suppress(Exception):  # the database is away: nobody else has it either
                lost = not await asyncio.to_thread(place.take)
        ours.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if lost:
            raise _taken(what) from None
        raise
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        await asyncio.to_thread(place.close)


def _taken(what: str) -> Conflict:
    return Conflict(
        f"{what} runs on another machine already, for this record",
        remedy="stop that one first",
    )
