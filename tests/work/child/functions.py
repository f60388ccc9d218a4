"""Functions and tools for tests that call them in processes of their own."""

import asyncio
import atexit
import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

from backburner import ConnectionRequired, Context, Image, InternalError, Outcome, ToolError, tool

NO_FUNCTION = 3
_NEVER = threading.Event()


def add(a: int, b: int) -> int:
    print("adding")
    return a + b


def where() -> dict[str, Any]:
    return {"cwd": os.getcwd(), "flavour": os.environ.get("FLAVOUR"), "argv": sys.argv}


def both_streams() -> None:
    print("out one")
    print("err one", file=sys.stderr)
    subprocess.run(["sh", "-c", "echo out two; echo err two >&2"], check=True)


def say_and_wait(text: str, file: str) -> str:
    """Says something, and goes on when the file is there."""
    print(text)
    while not Path(file).exists():
        _NEVER.wait(0.01)  # not `tests.waiting`, which loads pytest
    return "waited"


def raises(password: str = "") -> str:
    empty: dict[str, str] = {}
    try:
        password += empty["first"]
    except KeyError as error:
        raise ValueError(f"no good: api_key=abc123 {password}") from error
    return password


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raises_silently() -> NoReturn:
    raise Silent


def _nested(levels: int) -> list[Any]:
    return [_nested(levels - 1)] if levels else []


def comes_back_twice() -> str:
    """A process that copies itself: which of them is the task's?"""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    return "first" if pid else "second"


def breaks_its_outcome() -> str:
    """Leaves something else in the place of how it ended."""
    folder = os.path.dirname(os.environ["BACKBURNER_REPORT"])
    atexit.register(Path(folder, "outcome").write_text, "nonsense")
    return "lost"


def gives(what: str) -> Any:
    return {
        "nothing": None,
        "a set": {1, 2},
        "not a number": float("nan"),
        "too much": "x" * 2_000_000,
        "too deep": _nested(300),
        "nested": {"a": [1, {"b": None}]},
        "failure": Outcome(success=False, summary="not today", result={"left": 3}),
        "outcome": Outcome(summary="all good", result=[1]),
    }[what]


async def later(n: int) -> list[int]:
    return [await asyncio.to_thread(int, n)]


def leaves(how: str) -> str:
    """Ends the process in one of the ways that Python programs have."""
    match how:
        case "exit 0":
            sys.exit(0)
        case "exit 3":
            sys.exit(3)
        case "exit text":
            sys.exit("so long")
        case "_exit 4":
            os._exit(4)
        case "abort":
            os.abort()
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            atexit.register(os._exit, 5)
    return "returned before"


def spins(file: str) -> NoReturn:
    """A loop that never yields, deaf to what asks politely."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Path(file).touch()
    for _ in itertools.count():
        pass
    raise AssertionError


def sleeps(file: str) -> None:
    Path(file).touch()
    _NEVER.wait(3600)


def fails_until(file: str, times: int) -> int:
    """Fails so often, then returns how often it was called."""
    with Path(file).open("a") as log:
        log.write("x")
    calls = len(Path(file).read_text())
    if calls <= times:
        raise RuntimeError(f"call {calls}")
    return calls


def takes_memory(size: int) -> int:
    return len(bytearray(size))


async def talks(context: Context) -> dict[str, Any]:
    context.status("at it")
    await context.progress(1, 4, "steps", "half of half")
    context.output("stderr", "oh\n")
    answer = await context.ask("which?")
    return {"task": context.task, "answer": answer}


async def hears(context: Context, count: int) -> list[str]:
    return [await context.receive(timeout=30) for _ in range(count)]


@tool(background=True, idempotent=True)
async def crawl(context: Context, url: str, depth: int = 1) -> Outcome:
    """Look at a page."""
    print("looking")
    print("warning", file=sys.stderr)
    context.output("stdout", f"at {url}\n")
    context.progress(depth, 2)
    picture = Image(b"\x89PNG", name="page.png")
    return Outcome(
        summary="seen", result={"url": url}, raw_output={"html": "<p>"}, images=[picture]
    )


@tool(background=True, readonly=True)
def trouble(how: str) -> Outcome:
    """Fail in one of the ways that tools have."""
    match how:
        case "told":
            raise ToolError("the page is gone")
        case "internal":
            try:
                Path("/very/secret/disk 7").read_text()
            except OSError as error:
                raise InternalError("see the cause") from error
            return Outcome()
        case "connection":
            raise ConnectionRequired("github")
        case _:
            return Outcome(success=False, summary="no", result=[how])


def fails_after(text: str, file: str) -> NoReturn:
    say_and_wait(text, file)
    raise RuntimeError(text)


async def tells(context: Context) -> int:
    await context.tell("found one")
    return await context.ask("how many?", schema={"type": "integer"})
