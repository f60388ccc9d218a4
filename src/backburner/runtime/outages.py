"""A record that is away: who only looks waits for it, for as long as it wants to wait at all.

A database restarts, or a cable is out; what was waited for goes on meanwhile, on its own machine.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from backburner.model.errors import StoreAway

Result = TypeVar("Result")


async def endured(look: Callable[[], Awaitable[Result]], *, follow: bool = True) -> Result:
    """What a look at the record finds, when it is there again; only where one wants to ``follow``.

    It may be made several times: for what changes nothing, or nothing more the second time. It
    waits for a while each time, so this does not ask without a pause.
    """
    while True:
        try:
            return await look()
        except StoreAway:
            if not follow:
                raise
