"""`backburner wait`."""

from typing import TYPE_CHECKING, Annotated

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
from backburner.model.errors import TimeIsUp

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Task

EXAMPLES = (
    "backburner wait bg_7k2m && echo done",
    "backburner wait --timeout 10m bg_7k2m bg_x81c",
    "backburner wait --json bg_7k2m",
)


def command(
    ids: TaskArguments,
    *,
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout", metavar="TIME", help="Give up after this long: 60, 90s, 15m. [never]"
        ),
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Wait until tasks have ended, and exit with their code.

    ID is the id of a task, or enough of it. Exits with the task's own code, 6 when it was
    stopped, 1 when it failed without a code, 124 when the time is up; with several ids, the first
    of these that is not 0, in the order given. Ctrl-C leaves the tasks alone.
    """
    limit = None if timeout is None else seconds(timeout, "--timeout")

    async def work(_: "Backburner", session: "Session") -> int:
        import asyncio

        tasks = [await session.task(reference) for reference in ids]
        await asyncio.gather(*(_wait(task, limit) for task in tasks))
        if as_json:
            documents = [task.document() for task in tasks]
            say.document(documents[0] if len(ids) == 1 else documents)
        return exits.first_not_done(exits.status_of(task.record) for task in tasks)

    return act(place(home, session), work)


async def _wait(task: "Task", limit: float | None) -> None:
    try:
        await task.wait(limit)
    except TimeIsUp:
        await task.refresh()
    ended = phrases.sentence(task.record, clock.now())
    say.message(ended if task.state.terminal else f"time is up: {ended}")
