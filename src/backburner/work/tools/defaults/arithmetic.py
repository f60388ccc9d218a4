"""Sums that a model should not do in its head."""

import math
import operator
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from backburner.model.errors import ToolError
from backburner.work.tools.tool import tool

Number = int | Annotated[float, Field(allow_inf_nan=False)]

_BITS_MAX = 4096
"""About 1,200 digits."""


@tool(display_name="Add", readonly=True, idempotent=True)
async def add(a: Number, b: Number) -> float:
    """Add two numbers: a + b."""
    return _readable(operator.add, a, b)


@tool(display_name="Subtract", readonly=True, idempotent=True)
async def subtract(a: Number, b: Number) -> float:
    """Subtract the second number from the first: a - b."""
    return _readable(operator.sub, a, b)


@tool(display_name="Multiply", readonly=True, idempotent=True)
async def multiply(a: Number, b: Number) -> float:
    """Multiply two numbers: a * b."""
    return _readable(operator.mul, a, b)


@tool(display_name="Divide", readonly=True, idempotent=True)
async def divide(a: Number, b: Number) -> float:
    """Divide the first number by the second: a / b. The second must not be 0."""
    if b == 0:
        raise ToolError("division by zero", remedy="give a second number that is not 0")
    return _readable(lambda a, b: a / b, a, b)


def _readable(operation: Callable[[Any, Any], float], a: float, b: float) -> float:
    """ToolError where nobody could read the result: infinite, or of thousands of digits."""
    try:
        number = operation(a, b)
        if isinstance(number, int) and number.bit_length() <= _BITS_MAX:
            return number
        if math.isfinite(number) and not isinstance(number, int):
            return number
    except OverflowError:
        pass
    raise ToolError("the result is too large to be written as a number")
