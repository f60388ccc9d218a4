"""What the tasks of the machine do, where it is Python: functions, and tools to be imported.

Each leaves a line in a file of its own for every time it is begun, so that nothing can run twice
unseen. Loaded by the processes that run them, so it loads no test library.
"""

import asyncio
import contextlib
import os
import subprocess
import threading
from pathlib import Path
from typing import NoReturn

from backburner import Context, Outcome, tool

NUMBER = {"type": "integer"}
"""What an answer has to be."""

_PAUSE_S = 0.02


def begin(folder: str, mark: str) -> None:
    """Leave a mark: it runs."""
    fd = os.open(f"{folder}/ran-{mark}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, b"ran\n")
    finally:
        os.close(fd)


def gate(folder: str, mark: str) -> Path:
    """The file that lets it go on."""
    return Path(folder, f"go-{mark}")


async def until_open(folder: str, mark: str) -> None:
    """Wait for that file."""
    while not gate(folder, mark).exists():
        await _a_while(_PAUSE_S)


async def _a_while(seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


# Functions, in processes of their own


def returns(folder: str, mark: str) -> str:
    """Gives back what it was given."""
    begin(folder, mark)
    return mark


def raises(folder: str, mark: str) -> NoReturn:
    """Fails."""
    begin(folder, mark)
    raise ValueError(mark)


def sleeps(folder: str, mark: str, seconds: str) -> None:
    """Somebody has to stop it, and the process that it has started."""
    begin(folder, mark)
    subprocess.run(["sleep", seconds], check=True)


def passes(folder: str, mark: str) -> str:
    """Goes on when it may."""
    begin(folder, mark)
    while not gate(folder, mark).exists():
        threading.Event().wait(_PAUSE_S)
    return mark


# Tools


@tool(background=True)
async def gives(context: Context, folder: str, mark: str) -> str:
    """Gives back what it was given."""
    begin(folder, mark)
    context.output("stdout", f"{mark}\n")
    return mark


@tool(background=True)
async def breaks(folder: str, mark: str) -> NoReturn:
    """Fails."""
    begin(folder, mark)
    raise ValueError(mark)


@tool(background=True)
async def says_no(folder: str, mark: str) -> Outcome:
    """Fails, and keeps its result."""
    begin(folder, mark)
    return Outcome(success=False, summary="not today", result=mark)


@tool(background=True)
async def waits(context: Context, folder: str, mark: str) -> None:
    """Somebody has to stop it."""
    begin(folder, mark)
    context.status("waiting")
    await asyncio.Event().wait()


@tool(background=True)
async def dawdles(folder: str, mark: str) -> None:
    """The same, and takes its time when it is stopped."""
    begin(folder, mark)
    try:
        await asyncio.Event().wait()
    finally:
        await _a_while(0.2)


@tool(background=True)
async def goes_on(folder: str, mark: str) -> str:
    """The same, and answers as if it had not been stopped."""
    begin(folder, mark)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await _a_while(0.1)
    return mark


@tool(background=True)
async def passes_once(folder: str, mark: str) -> str:
    """Goes on when it may, and must not run twice."""
    begin(folder, mark)
    await until_open(folder, mark)
    return mark


@tool(background=True, idempotent=True)
async def passes_again(context: Context, folder: str, mark: str) -> str:
    """The same, and may run twice."""
    begin(folder, mark)
    context.progress(1, 2)
    await until_open(folder, mark)
    return mark


@tool(background=True, idempotent=True)
async def passes_with_secret(folder: str, mark: str, api_key: str) -> str:
    """The same, with what is not kept: it cannot be taken up again."""
    assert api_key
    begin(folder, mark)
    await until_open(folder, mark)
    return mark


@tool(background=True)
async def asks(context: Context, folder: str, mark: str) -> int:
    """Gives back the number that it is told."""
    begin(folder, mark)
    return await context.ask("how many?", schema=NUMBER)


@tool(background=True, readonly=True)
async def asks_again(context: Context, folder: str, mark: str) -> int:
    """The same, and may run twice."""
    begin(folder, mark)
    return await context.ask("how many?", schema=NUMBER)


@tool(background=True)
async def hears(context: Context, folder: str, mark: str) -> str:
    """Gives back the message that it is sent."""
    begin(folder, mark)
    await context.tell("say something")
    return await context.receive()
