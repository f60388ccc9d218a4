"""Waiting for a condition, with a deadline: the only place in the tests that sleeps.

`wait_until` and `wait_until_async` return what the condition gave once it is true. `pause` is for
the few tests whose subject is time itself, such as a kill at a random moment.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar, cast

T = TypeVar("T")

Message = str | Callable[[], str]
"""What to say when time is up; a callable can tell what was there instead."""

FIRST_NAP = 0.001
LONGEST_NAP = 0.05  # a test that waits must not keep busy the cores that it waits for


def wait_until(
    condition: Callable[[], T | None],
    timeout: float = 60,  # generous: tests also have to pass on a busy machine
    message: Message = "the condition did not come true",
) -> T:
    """Call `condition` until what it returns is true, and return that; fail when time is up."""
    __tracebackhide__ = True
    for nap in _naps(timeout):
        if value := condition():
            return value
        time.sleep(nap)
    if value := condition():
        return value
    raise _failure(message, timeout)


async def wait_until_async(
    condition: Callable[[], T | Awaitable[T | None] | None],
    timeout: float = 60,
    message: Message = "the condition did not come true",
) -> T:
    """The same inside an event loop; `condition` may be a coroutine function."""
    __tracebackhide__ = True
    for nap in _naps(timeout):
        if value := await _value_of(condition):
            return value
        await asyncio.sleep(nap)
    if value := await _value_of(condition):
        return value
    raise _failure(message, timeout)


def pause(seconds: float, *, because: str) -> None:
    """Let time pass, where time is what the test is about; `because` says why."""
    assert because
    time.sleep(seconds)


async def pause_async(seconds: float, *, because: str) -> None:
    """The same inside an event loop."""
    assert because
    await asyncio.sleep(seconds)


def _naps(timeout: float) -> Iterator[float]:
    deadline = time.monotonic() + timeout
    nap = FIRST_NAP
    while (left := deadline - time.monotonic()) > 0:
        yield min(nap, left)
        nap = min(nap * 1.5, LONGEST_NAP)


async def _value_of(condition: Callable[[], T | Awaitable[T | None] | None]) -> T | None:
    value = condition()
    if isinstance(value, Awaitable):
        return await cast("Awaitable[T | None]", value)  # no condition gives an awaitable as its T
    return value


def _failure(message: Message, timeout: float) -> AssertionError:
    text = message if isinstance(message, str) else message()
    return AssertionError(f"{text} (waited {timeout:g} s)")
