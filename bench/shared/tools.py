"""What the workers of `machines` carry out in themselves: `backburner worker --tools` this."""

import time

from backburner import tool


@tool(background=True)
async def noop() -> bool:
    """Do nothing."""
    return True


@tool(background=True)
async def moment() -> int:
    """When it began."""
    return time.time_ns()
