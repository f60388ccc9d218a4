"""Functions that block, called in threads of their own while the event loop goes on.

Not `asyncio.to_thread`: its few workers (six on two cores) would be taken by the first six calls
that are parked, and an application could not leave before the last of them came back. These threads
are as many as there are calls, and they are daemons; what is limited is the number of calls.
"""

import asyncio
import contextlib
import contextvars
import functools
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from backburner.work.tools.context import BlockingContext, Context

_IDLE_S = 5.0
"""How long a thread waits for another call: starting one takes longer than most calls."""


class _Call(NamedTuple):
    work: Callable[[], Any]
    variables: contextvars.Context
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[Any]"


_Inbox = queue.SimpleQueue[_Call]

_idle: list[_Inbox] = []
"""Threads that wait. Appending and popping are atomic; who pops one owns it."""

os.register_at_fork(after_in_child=_idle.clear)  # threads do not survive a fork


def in_thread(function: Callable[..., Any], kwargs: dict[str, Any]) -> "asyncio.Future[Any]":
    """What ``function`` returns or raises, as a future of the running loop.

    A cancelled future lets go of the call; the thread itself cannot be ended, and finishes unheard.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    work = functools.partial(function, **kwargs) if kwargs else function
    call = _Call(work, contextvars.copy_context(), loop, answer)
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = _Inbox()
        name = "backburner-tool"
        threading.Thread(target=_serve, args=(inbox,), name=name, daemon=True).start()
    inbox.put(call)
    return answer


def blocking(context: Context) -> BlockingContext:
    """The context for a function that is called in a thread; from the loop that it calls back."""
    loop = asyncio.get_running_loop()

    def carry(coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    return BlockingContext(context, carry)


def _serve(inbox: _Inbox) -> None:
    while True:
        try:
            call = inbox.get(timeout=_IDLE_S)
        except queue.Empty:
            try:
                _idle.remove(inbox)
            except ValueError:  # somebody has taken it in this moment, and a call is on its way
                continue
            return
        _carry_out(call)
        del call  # its arguments are not kept while the thread waits
        _idle.append(inbox)


def _carry_out(call: _Call) -> None:
    value: Any = None
    problem: BaseException | None = None
    try:
        value = call.variables.run(call.work)
    except (StopIteration, GeneratorExit, KeyboardInterrupt) as error:
        # The first no future can hold; the last would end the whole loop, and was no Ctrl-C here.
        problem = RuntimeError(f"the function raised {type(error).__name__}")
        problem.__cause__ = error
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits the call
        problem = error
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        call.loop.call_soon_threadsafe(_answer, call.answer, value, problem)


def _answer(answer: "asyncio.Future[Any]", value: Any, problem: BaseException | None) -> None:
    if answer.done():
        return
    if problem is None:
        answer.set_result(value)
    else:
        answer.set_exception(problem)
