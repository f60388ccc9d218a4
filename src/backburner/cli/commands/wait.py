"""`backburner wait`."""

import contextlib
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from backburner.cli import exits, phrases, say
from backburner.cli.options import (
    HomeOption,
    JsonOption,
    SessionOption,
    TaskArguments,
    seconds,
)
from backburner.cli.place import act, place
from backburner.model import clock
from backburner.model.errors import NeverReady, StoreAway, TimeIsUp

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Task

EXAMPLES = (
    "backburner wait bg_7k2m && echo done",
    "backburner wait --timeout 10m bg_7k2m bg_x81c",
    "backburner wait --json bg_7k2m",
    "backburner wait --for ready --timeout 60 bg_7k2m && curl http://127.0.0.1:8080/",
)

_LAST_LOOK_S = 2.0


def command(
    ids: TaskArguments,
    *,
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout", metavar="TIME", help="Give up after this long: 60, 90s, 15m. [never]"
        ),
    ] = None,
    until: Annotated[
        Literal["end", "ready"],
        typer.Option(
            "--for",
            metavar="end|ready",
            help="What to wait for: its end, or that it is ready. [end]",
            show_default=False,
        ),
    ] = "end",
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Wait until tasks have ended, and exit with their code.

    ID is the id of a task, or enough of it. Exits with the task's own code, 6 when it was
    stopped, 1 when it failed without a code, 124 when the time is up; with several ids, the first
    of these that is not 0, in the order given. Ctrl-C leaves the tasks alone.

    With --for ready it exits with 0 as soon as they are ready, and with the code of one that ended
    instead (1 where that is 0). They need a condition, such as run --ready-port.
    """
    limit = None if timeout is None else seconds(timeout, "--timeout")

    async def work(_: "Backburner", session: "Session") -> int:
        import asyncio

        tasks = [await session.task(reference) for reference in ids]
        if until == "ready":
            statuses = await asyncio.gather(*(_wait_ready(task, limit) for task in tasks))
        else:
            statuses = await asyncio.gather(*(_wait(task, limit) for task in tasks))
        if as_json:
            documents = [task.document() for task in tasks]
            say.document(documents[0] if len(ids) == 1 else documents)
        return exits.first_not_done(statuses)

    return act(place(home, session), work)


async def _wait_ready(task: "Task", limit: float | None) -> int:
    try:
        await task.wait(limit, until="ready")
    except TimeIsUp:
        await _look_once_more(task)
        say.message(f"time is up: {phrases.sentence(task.record, clock.now())}")
        return exits.TIME_IS_UP
    except NeverReady:
        await task.refresh()
        say.message(phrases.sentence(task.record, clock.now()))
        return exits.status_of(task.record) or exits.FAILED
    say.message(phrases.sentence(task.record, clock.now()))
    return exits.status_of(task.record) if task.state.terminal else exits.DONE


async def _wait(task: "Task", limit: float | None) -> int:
    try:
        await task.wait(limit)
    except TimeIsUp:
        await _look_once_more(task)
    ended = phrases.sentence(task.record, clock.now())
    say.message(ended if task.state.terminal else f"time is up: {ended}")
    return exits.status_of(task.record)


async def _look_once_more(task: "Task") -> None:
    """Where it is by now; where the record is away, where it was."""
    import asyncio

    with contextlib.suppress(TimeoutError, StoreAway):
        async with asyncio.timeout(_LAST_LOOK_S):
            await task.refresh()
