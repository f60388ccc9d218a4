"""What the commands of a chat do. Everything here acts in the session of whoever asks."""

import contextlib
from typing import TYPE_CHECKING

from backburner.gateway import wording
from backburner.gateway.asking import REMEDY, answer
from backburner.gateway.desk import Request
from backburner.gateway.platform import Message
from backburner.gateway.registry import Command, Commands
from backburner.gateway.scheduling import schedule
from backburner.gateway.talking import BACKGROUND
from backburner.gateway.uploads import kept
from backburner.model.errors import NotFound, TimeIsUp
from backburner.model.limits import OUTPUT_MAX_CHARS
from backburner.model.signals import end_key
from backburner.model.states import State
from backburner.runtime.followup import DELIBERATE
from backburner.tools.dialects.manage_bg_jobs import ALIASES
from backburner.tools.dialects.tasks import found, running_and_recent

if TYPE_CHECKING:
    from backburner.app import Task

UNKNOWN = "I do not know that command. /help lists what there is."

WAIT_S = 600.0
"""What /wait waits: the end is told in any case."""

LISTED = 20
_OUTPUT_CHARS = 3_000
"""Of output in a chat: a page or two."""

NO_TASKS = "There are no background tasks in this chat. /background starts one."

_WORDS = {name: action for action, more in ALIASES.items() for name in (action, *more)}
"""Single words after /background that are about tasks (B9), alone or with an id."""


async def background(request: Request) -> None:
    """B1: a prompt in a session of its own."""
    word, *rest = request.arguments.split(maxsplit=1)
    about = rest[0].strip() if rest else ""
    action = _WORDS.get(word.lower(), "list" if word.lower() == "tasks" else None)
    if action is not None and (not about or (about.startswith("bg_") and " " not in about)):
        request.arguments = about
        await _manage(request, action)
    elif word.lower() == "help" and not about:
        await request.reply(_usage(request, "background"))
    else:
        await _start(request, request.arguments)


async def _manage(request: Request, action: str) -> None:
    match action:
        case "list":
            await (status(request) if request.arguments else tasks(request))
        case "output":
            await output(request)
        case _:
            await stop(request)


async def _start(request: Request, prompt: str) -> None:
    session = request.session
    try:
        task = await session.task(request.task_id)  # of a gateway that was killed meanwhile
    except NotFound:
        uploads = request.heard.uploads if isinstance(request.heard, Message) else ()
        paths = await kept(uploads, session.folder)
        task = await session.ask(
            prompt,
            agent=request.desk.talking.agents.named(BACKGROUND, session),
            attachments=paths,
            id=request.task_id,
        )
    await request.reply_started(task)


async def tasks(request: Request) -> None:
    """What runs, and what has ended lately."""
    known = await running_and_recent(request.session)
    if not known:
        await request.reply(NO_TASKS)
        return
    lines = [wording.line(task.record) for task in known[:LISTED]]
    if len(known) > LISTED:
        lines.append(f"and {len(known) - LISTED} more")
    await request.reply("\n".join(lines))


async def status(request: Request) -> None:
    """One of them."""
    task = await _task(request)
    await request.reply(wording.line(task.record))


async def output(request: Request) -> None:
    """What a task has printed, or answered."""
    if not request.arguments:
        await request.reply(_usage(request, "output"))
        return
    task = await _task(request)
    chunk = await task.output(max_chars=_OUTPUT_CHARS)
    printed = "\n".join(text for text in (chunk.text, chunk.stderr_text or "") if text.strip())
    record = task.record
    parts = [wording.line(record)]
    if record.state is State.SUCCEEDED and (said := wording.answer(record)):
        parts.append(said[:OUTPUT_MAX_CHARS])
    elif record.state is State.FAILED:
        parts.append(wording.why(record))
    if printed.strip():
        parts.append(wording.code(printed))
    if len(parts) == 1:
        parts.append("It printed nothing." if record.state.terminal else "Nothing printed yet.")
    await request.reply("\n\n".join(parts))


async def wait(request: Request) -> None:
    """The end of a task, which is told by itself: a word only where that is over, or far."""
    task = await _task(request)
    if not task.state.terminal:
        with contextlib.suppress(TimeIsUp):
            await task.wait(WAIT_S)
            return
        await request.reply(f"It goes on; you are told when it ends.\n{wording.line(task.record)}")
        return
    await request.reply(wording.line(task.record))


async def stop(request: Request) -> None:
    """End a task, or the agent's present answer."""
    if not request.arguments:
        # Taken up again after a restart, it would end another answer.
        request.desk.journal.begin(request.heard)
        waiting = request.desk.talking.waiting(request.scope)
        if not await request.desk.talking.stop(request.scope):
            await request.reply(_usage(request, "stop"))
        elif waiting:
            await request.reply(f"Left out, too: {waiting} that waited for an answer.")
        return
    task = await _task(request)
    if task.state.terminal and not task.record.leftovers:
        await request.reply(f"It is not running.\n{wording.line(task.record)}")
        return
    await task.stop()
    if task.state is State.CANCELED:
        # Whoever stops a task knows of its end (A4).
        await request.desk.backburner.store.drop_signal(end_key(task.id), DELIBERATE)
    await request.reply(wording.line(task.record))


async def help_(request: Request) -> None:
    """What there is."""
    named = request.arguments.lstrip("/").split(maxsplit=1)
    command = request.desk.commands.find(named[0]) if named else None
    if named and command is None:
        await request.reply(UNKNOWN)
        return
    await request.reply(command.usage if command is not None else request.desk.commands.help())


async def new(request: Request) -> None:
    """Forget what was said."""
    request.desk.memory.forget(request.scope)
    await request.reply("Let us start anew: I have forgotten what was said here. Tasks go on.")


async def whoami(request: Request) -> None:
    """For the list of those who may speak."""
    person = request.heard.person
    await request.reply(
        f"You are on the list of this bot. Your id here: {person.id}\n/help lists the commands."
    )


def stranger(person_id: str) -> str:
    """What somebody is told who is not on the list: nothing about tasks."""
    return f"You are not on the list of this bot. Your id here: {person_id}"


async def _task(request: Request) -> "Task":
    return await found(request.session, request.arguments.split()[0], remedy=REMEDY)


def _usage(request: Request, name: str) -> str:
    command = request.desk.commands.find(name)
    assert command is not None
    return command.usage


COMMANDS = Commands(
    (
        Command(
            "background",
            "Run a prompt in the background",
            "Session",
            background,
            "PROMPT",
            ("bg",),
            needs=True,
        ),
        Command("new", "Forget what was said here, and start anew", "Session", new),
        Command("tasks", "List the background tasks of this chat", "Tasks", tasks),
        Command(
            "output",
            "Show what a task has printed",
            "Tasks",
            output,
            "ID",
            needs=True,
            takes_task=True,
        ),
        Command(
            "wait",
            "Wait for the end of a task",
            "Tasks",
            wait,
            "ID",
            slow=True,
            needs=True,
            takes_task=True,
        ),
        Command(
            "stop",
            "Stop a task; without an ID, the answer that is being written and what waits for one",
            "Tasks",
            stop,
            "ID",
            slow=True,
            takes_task=True,
        ),
        Command(
            "answer",
            "Answer the question of a task",
            "Tasks",
            answer,
            "ID TEXT",
            needs=True,
            takes_task=True,
        ),
        Command(
            "schedule",
            "Run a prompt by the clock; alone, list what is planned",
            "Tasks",
            schedule,
            "CRON PROMPT | at TIME PROMPT | stop ID",
        ),
        Command("whoami", "Show your id here", "Help", whoami, aliases=("start",)),
        Command("help", "List the commands", "Help", help_, "COMMAND"),
    )
)
