"""What the programs share: 64 callers, the clock, and a worker that ends with its round.

A round is the same for every peer: the worker is started and has done some runs before the clock
starts; then 64 callers hand over all runs as fast as they are taken, without waiting for the end of
one before the next; the clock stops when the last has finished. One line of JSON tells the time.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path

CALLERS = 64
CORES = os.cpu_count() or 1
WARM_UP = 200
PLACE = os.environ.get("PEER_PLACE", "")
"""Where the peer keeps its record: an address, or a file."""

_PATIENCE_S = 300.0
_NAP_S = 0.005
_TIME_TO_LEAVE_S = 15.0

_workers: list[subprocess.Popen[bytes]] = []

Submit = Callable[[int], object]
Finished = Callable[[int], bool]
"""Whether so many runs have finished since the program began."""


@contextlib.contextmanager
def worker(
    *command: str, processes: int = 1, ends_with: signal.Signals = signal.SIGTERM
) -> Generator[None]:
    """A program of the same environment, in our process group; ended at the end."""
    program = str(Path(sys.executable).with_name(command[0]))
    try:
        _workers.extend(
            subprocess.Popen([program, *command[1:]], stdout=subprocess.DEVNULL)
            for _ in range(processes)
        )
        yield
    finally:
        for process in _workers:
            process.send_signal(ends_with)
        for process in _workers:
            try:
                process.wait(_TIME_TO_LEAVE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def measure(count: int, submit: Submit, finished: Finished) -> None:
    """A round of a peer whose callers are threads."""
    _in_threads(WARM_UP, submit)
    _until(finished, WARM_UP)
    began = time.perf_counter()
    _in_threads(count, submit)
    _until(finished, WARM_UP + count)
    tell(time.perf_counter() - began)


async def measure_async(
    count: int,
    submit: Callable[[int], Awaitable[object]],
    finished: Callable[[int], Awaitable[bool]],
) -> None:
    """A round of a peer whose callers are coroutines."""
    await _in_tasks(WARM_UP, submit)
    await _until_async(finished, WARM_UP)
    began = time.perf_counter()
    await _in_tasks(count, submit)
    await _until_async(finished, WARM_UP + count)
    tell(time.perf_counter() - began)


def _in_threads(count: int, submit: Submit) -> None:
    numbers = iter(range(count))
    lock = threading.Lock()
    problems: list[BaseException] = []

    def caller() -> None:
        try:
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                submit(number)
        except BaseException as problem:  # noqa: BLE001 - raised by whoever waits for the callers
            problems.append(problem)

    threads = [threading.Thread(target=caller) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


async def _in_tasks(count: int, submit: Callable[[int], Awaitable[object]]) -> None:
    numbers = iter(range(count))

    async def caller() -> None:
        for number in numbers:
            await submit(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(caller())


def _until(finished: Finished, total: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not finished(total):
        _go_on_until(deadline)
        time.sleep(_NAP_S)


async def _until_async(finished: Callable[[int], Awaitable[bool]], total: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not await finished(total):
        _go_on_until(deadline)
        await asyncio.sleep(_NAP_S)


def _go_on_until(deadline: float) -> None:
    if any(process.poll() is not None for process in _workers):
        raise RuntimeError("the worker has ended")
    if time.monotonic() > deadline:
        raise TimeoutError(f"the runs have not finished after {_PATIENCE_S:g} s")


def tell(seconds: float) -> None:
    """Say how long it took."""
    print(json.dumps({"seconds": seconds}), flush=True)
