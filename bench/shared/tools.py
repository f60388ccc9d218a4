"""What the workers of `machines` carry out in themselves: `backburner worker --tools` this."""

from backburner import tool


@tool(background=True)
async def noop() -> bool:
    """Do nothing."""
    return True
