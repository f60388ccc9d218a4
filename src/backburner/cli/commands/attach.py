"""`backburner attach`."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, phrases, say, terminal
from backburner.cli.detachkey import DetachKey
from backburner.cli.options import HomeOption, JsonOption, SessionOption, TaskArgument
from backburner.cli.place import act, place
from backburner.model import clock
from backburner.model.errors import InputRefused, UsageError
from backburner.model.input import Input
from backburner.model.states import State

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Task
    from backburner.cli.attaching import Parting

EXAMPLES = (
    "backburner attach bg_7k2m                      Ctrl-] leaves; the job goes on",
    "backburner attach --read-only bg_7k2m          look, without touching anything",
    "backburner attach --detach-key ctrl-a bg_7k2m",
)

_PATIENCE_S = 0.5
"""After so long, a person is told what is waited for."""


def command(
    id: TaskArgument,
    *,
    detach_key: Annotated[
        str,
        typer.Option(
            "--detach-key",
            metavar="KEY",
            help="The key that leaves, such as ctrl-a; Ctrl-] unless told.",
            show_default=False,
        ),
    ] = "ctrl-]",
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only", help="Send no keys and leave its size alone; Ctrl-C leaves too."
        ),
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Be at the terminal of a task that was started with --pty.

    ID is the id of a task, or enough of it. Every key goes to the task, Ctrl-C too, but for the
    one that leaves. Leaving, or closing this terminal, leaves the task alone. Several can be
    attached at once; it has the size of the last. Exits with the task's code when it ends, with 0
    when you leave.
    """
    key = DetachKey.parse(detach_key)

    async def work(backburner: "Backburner", session: "Session") -> int:
        task = await session.task(id)
        _check(backburner, task)
        status = await _stay(backburner, task, key, read_only=read_only)
        if as_json:
            say.document(task.document())
        return status

    return act(place(home, session), work)


def _check(backburner: "Backburner", task: "Task") -> None:
    if backburner.home.shared:
        raise InputRefused(
            f"{task.id} may have its terminal on another machine, which cannot be attached to",
            remedy=f"follow it with: backburner logs -f {task.id}; "
            f"give it input with: backburner send {task.id} TEXT",
        )
    if Input(task.record.spec.get("input", Input.NONE)) is not Input.PTY:
        given = "give it input with" if task.record.spec.get("input") else "answer it with"
        raise InputRefused(
            f"{task.id} has no terminal",
            remedy=f"follow it with: backburner logs -f {task.id}; "
            f"{given}: backburner send {task.id} TEXT",
        )
    if task.state.terminal:
        raise InputRefused(f"{task.id} has ended", remedy=f"its output: backburner logs {task.id}")
    if os.environ.get("BACKBURNER_TASK_ID") == task.id:
        raise UsageError("a task cannot be attached to itself", remedy="use another terminal")
    if not (terminal.is_terminal(sys.stdin) and terminal.is_terminal(sys.stdout)):
        raise UsageError(
            "attach needs a terminal",
            remedy=f"without one: backburner logs -f {task.id}, backburner send {task.id} TEXT",
        )


async def _stay(backburner: "Backburner", task: "Task", key: DetachKey, *, read_only: bool) -> int:
    """At its terminal until one of the two leaves; a new attempt has a new terminal."""
    from backburner.cli.attaching import Parting

    greeted = False
    while await _runs(task):
        attempt = task.record.attempt
        if not greeted:
            say.message(f"attached to {task.id}; {key} leaves, and it goes on")
            greeted = True
        parting = await _attach(backburner, task, key, read_only=read_only)
        if parting is not Parting.ENDED:
            say.message(f"left alone: {task.id} goes on")
            say.hint(f"backburner attach {task.id} comes back, backburner stop {task.id} ends it")
            return exits.DONE if parting is Parting.DETACHED else exits.INTERRUPTED
        await _until(task, attempt)
    say.message(phrases.sentence(task.record, clock.now()))
    return exits.status_of(task.record)


async def _attach(
    backburner: "Backburner", task: "Task", key: DetachKey, *, read_only: bool
) -> "Parting":
    from backburner.cli.attaching import Attachment, Parting
    from backburner.work.input import InputLine

    folder = backburner.home.attempt(task.id, task.record.attempt)
    try:
        attachment = Attachment(lambda: InputLine(folder), key, read_only=read_only)
    except InputRefused:
        if (await task.refresh()).state.terminal:
            return Parting.ENDED  # a moment ago
        raise
    return await attachment.last()


async def _runs(task: "Task") -> bool:
    """Wait for its start; whether it runs."""
    import asyncio

    try:
        async with asyncio.timeout(_PATIENCE_S):
            await _until(task, 0)
    except TimeoutError:
        say.message(f"{task.id} has not started yet; waiting for it, Ctrl-C leaves")
        await _until(task, 0)
    return not task.state.terminal


async def _until(task: "Task", attempt: int) -> None:
    """Until it has ended, or an attempt after this one runs."""
    async for _ in task.events():
        await task.refresh()
        started = task.state is not State.QUEUED and task.record.attempt > attempt
        if started or task.state.terminal:
            return
