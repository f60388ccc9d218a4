"""D2, D6: functions that block, each in a thread of its own."""

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from backburner import Outcome
from backburner.work.tools.execution import Failure, carry_out
from backburner.work.tools.tool import tool_of
from tests.waiting import wait_until, wait_until_async


async def run(function: Callable[..., Any]) -> Outcome | Failure:
    return await carry_out(tool_of(function), {}, None)


async def test_d6_a_cancel_lets_go_of_a_function_that_blocks() -> None:
    began, go_on, finished = threading.Event(), threading.Event(), threading.Event()

    def block() -> None:
        began.set()
        go_on.wait()
        finished.set()

    task = asyncio.create_task(run(block))
    await wait_until_async(began.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not finished.is_set()
    go_on.set()
    wait_until(finished.is_set)


async def test_d2_functions_that_block_do_not_wait_for_each_other() -> None:
    """More of them than a pool of threads would have: each waits for all the others."""
    many = 100
    together = threading.Barrier(many, timeout=60)

    def block() -> int:
        return together.wait()

    results = await asyncio.gather(*(run(block) for _ in range(many)))
    assert sorted(each.result for each in results if isinstance(each, Outcome)) == [*range(many)]


async def test_e1_a_function_that_blocks_sees_the_variables_of_its_caller() -> None:
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("mine")

    def look() -> str:
        seen = variable.get()
        variable.set("changed")
        return seen

    assert await run(look) == Outcome(result="mine")
    assert variable.get() == "mine"


async def test_e1_a_plain_function_may_give_a_coroutine() -> None:
    async def later() -> int:
        return 3

    def give() -> Any:
        return later()

    assert await run(give) == Outcome(result=3)


def test_x2_a_function_that_never_returns_does_not_hold_the_application() -> None:
    program = (
        "import asyncio, threading\n"
        "from backburner import Registry\n"
        "registry = Registry()\n"
        "began = threading.Event()\n"
        "@registry.tool\n"
        "def stuck():\n"
        "    began.set()\n"
        "    threading.Event().wait()\n"
        "async def main():\n"
        "    task = asyncio.create_task(registry.execute('stuck', {}))\n"
        "    while not began.is_set():\n"
        "        await asyncio.sleep(0.01)\n"
        "asyncio.run(main())\n"
        "print('left')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("left\n", "")
