"""An application of the campaign: starts jobs, waits for some, stops some, takes signals.

A program of its own, so that it can be killed. It writes down what it was promised, on disk before
it goes on: each start that returned an id, and each signal that it was the one to acknowledge.

    python -m tests.faults.application HOME FOLDER NAME SECONDS SEED MIX

HOME is a folder or the address of a database. The session is named like the folder of its notes.
MIX is one of `MIXES`: what kinds of work it starts.
"""

import asyncio
import contextlib
import json
import os
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backburner import (
    Backburner,
    BackburnerError,
    EventKind,
    LimitReached,
    NotFound,
    Session,
    Task,
)
from backburner.model.errors import StoreUnusable
from backburner.runtime.feed import Feed
from backburner.runtime.signals import SignalService
from tests.waiting import wait_until_async

LEASE_S = 1.0
"""Short, so that what a dead application held comes back within a round."""

OPERATIONS = 14
AT_ONCE = 4
TALK = 15


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a job does, after it has written into a file of its own that it runs."""

    name: str
    line: str
    exit_code: int | None = None
    """None: it is killed, or stopped, or takes too long."""
    endless: bool = False
    """Somebody has to stop it."""
    max_runtime: float = 600
    runs: int = 1
    """How often the line is run, all attempts together."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    function: str | None = None
    """Of `functions`, in the place of the line."""
    tool: str | None = None
    """Of `tools`, in the place of the line."""
    repeatable: bool = False
    """It may be run again where its machine has died."""

    async def start(self, session: Session, ran: Path, seconds: str, id: str | None) -> Task:
        """As a task of the session."""
        if self.function is not None:
            return await session.call(
                f"{FUNCTIONS}:{self.function}",
                {"ran": str(ran), "seconds": seconds},
                id=id,
                max_runtime=self.max_runtime,
                **self.options,
            )
        if self.tool is not None:
            arguments = {"ran": str(ran), "seconds": seconds}
            return await session.spawn(self.tool, arguments, id=id, max_runtime=self.max_runtime)
        line = f"RAN={ran}; echo ran >>$RAN; {self.line}"
        return await session.run(line, id=id, max_runtime=self.max_runtime, **self.options)


FUNCTIONS = "tests.faults.functions"
QUEUE = "two"
WIDTH = 2
ANSWER = "forty two"


def behaviour(name: str, seconds: str) -> Behaviour:
    """The behaviours by name, so that the campaign knows what to expect."""
    return {each.name: each for each in _behaviours(seconds)}[name]


def _behaviours(seconds: str) -> list[Behaviour]:
    talk = f"for i in $(seq {TALK}); do echo line $i; sleep 0.02; done"
    forever = f"sleep {seconds} & env -i setsid sleep {seconds} & wait"
    ask = f'answer=$({sys.executable} -m backburner.cli ask "which?"); echo "got $answer"'
    # A place for each that may run at once: who finds none is one too many.
    places = [f"flock -n $(dirname $RAN)/place{number} sleep 0.05" for number in range(WIDTH)]
    return [
        *(Behaviour(f"exit-{code}", f"exit {code}", code) for code in (0, 3, 137)),
        Behaviour("talk", talk, 0),
        Behaviour("crash", "kill -9 $$"),
        Behaviour("linger", f"env -i setsid -f sleep {seconds}", 0),
        Behaviour("limited", f"sleep {seconds}", max_runtime=0.6),
        Behaviour("forever", forever, endless=True),
        Behaviour("stubborn", f"trap '' TERM; sleep {seconds} & wait", endless=True),
        Behaviour("again", "[ $(wc -l <$RAN) -ge 3 ] || exit 4", 0, runs=3, options={"retries": 2}),
        Behaviour("queued", " || ".join(places), 0, options={"queue": QUEUE}),
        Behaviour("ask", ask, 0),
        Behaviour("returns", "", 0, function="returns"),
        Behaviour("raises", "", function="raises"),
        Behaviour("floods", "", 0, function="floods"),
        Behaviour("sleeps", "", endless=True, function="sleeps"),
        Behaviour("terminal", "test -t 0 && test -t 1 && exit 5", 5, options={"pty": True}),
        *(_tool(f"{name}_once") for name in ("brief", "endless")),
        *(_tool(f"{name}_again", repeatable=True) for name in ("brief", "endless")),
    ]


def _tool(name: str, *, repeatable: bool = False) -> Behaviour:
    endless = name.startswith("endless")
    return Behaviour(name, "", endless=endless, tool=name, repeatable=repeatable)


NAMES = (
    *("exit-0", "exit-3", "exit-137", "talk", "talk", "crash"),
    *("linger", "limited", "forever", "stubborn"),
    *("again", "queued", "queued", "ask", "terminal"),
    *("returns", "raises", "floods", "sleeps"),
)
TOOLS = ("brief_once", "brief_again", "brief_again", "endless_once", "endless_again")
MIXES = {"commands": NAMES, "tools": (*NAMES, *TOOLS, *TOOLS)}


class Notebook:
    """Lines that are on disk when `note` returns."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, **facts: Any) -> None:
        os.write(self._fd, json.dumps(facts).encode() + b"\n")
        os.fsync(self._fd)


def notes(path: Path) -> list[dict[str, Any]]:
    """What is in a notebook."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


async def operate(
    session: Session, folder: Path, name: str, seconds: str, *, seed: int, mix: str
) -> None:
    """Start jobs, a few at a time, and do something with each of them."""
    started = Notebook(folder / "started")
    stopped = Notebook(folder / "stopped")
    numbers = iter(range(OPERATIONS))

    async def one_after_the_other() -> None:
        for number in numbers:
            # The same choices for the same number: an application that was killed and started
            # again asks for the same tasks.
            dice = random.Random(f"{seed} {name} {number}")
            kind = behaviour(dice.choice(MIXES[mix]), seconds)
            token = f"{name}-{number}"
            chosen = token if dice.random() < 0.6 else None
            if chosen is None:
                token += f"-{os.getpid()}"
            try:
                task = await kind.start(session, folder / f"ran-{token}", seconds, chosen)
            except LimitReached:
                continue
            started.note(id=task.id, behaviour=kind.name, token=token)
            then = dice.random()
            if kind.endless or then < 0.1:
                if then < 0.5:
                    await task.stop(force=then < 0.25, grace=0.3)
                    stopped.note(id=task.id, state=task.state)
            elif kind.name == "ask" and then < 0.6:
                await answer(task)
            elif then < 0.3:
                with contextlib.suppress(NotFound):
                    await task.wait()
            elif then < 0.4:
                await task.output()

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))


async def answer(task: Task) -> None:
    """See it to its end, and answer its questions, unless somebody else does."""
    async for event in task.events():
        if event.kind is EventKind.ASKED:
            with contextlib.suppress(BackburnerError):
                await task.send(ANSWER)


async def listen(bb: Backburner, session: Session, folder: Path) -> None:
    """Take signals, and acknowledge most of them."""
    acknowledged = Notebook(folder / "acknowledged")
    bb.inbox = SignalService(bb.store, Feed(bb.store), lease_s=LEASE_S)
    taken = 0
    async for signal in session.signals():
        taken += 1
        if taken % 5 and await signal.ack():
            acknowledged.note(key=signal.key)


async def main(address: str, folder: Path, name: str, seconds: str, *, seed: int, mix: str) -> None:
    """Run until all is done."""
    async with contextlib.AsyncExitStack() as stack:
        bb = await wait_until_async(lambda: _opened(stack, address))
        session = bb.session(folder.name)
        listening = asyncio.create_task(listen(bb, session, folder))
        await operate(session, folder, name, seconds, seed=seed, mix=mix)
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening


async def _opened(stack: contextlib.AsyncExitStack, address: str) -> Backburner | None:
    """Its database may be about to come back: an application would be started again."""
    with contextlib.suppress(StoreUnusable):
        return await stack.enter_async_context(Backburner.open(address))
    return None


if __name__ == "__main__":
    where, notes_in, who, asleep, number, kinds = sys.argv[1:]
    asyncio.run(main(where, Path(notes_in), who, asleep, seed=int(number), mix=kinds))
