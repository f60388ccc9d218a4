"""Functions that tests call in processes of their own."""

from typing import Any


async def echo_messages(context: Any, count: int) -> list[str]:
    """The first messages that it gets."""
    await context.tell("listening")
    return [await context.receive(timeout=60) for _ in range(count)]


async def pick(context: Any) -> Any:
    """The answer to a question that has to be a number."""
    return await context.ask("How many?", schema={"type": "integer", "minimum": 1})
