"""Plain messages: a shell block for the background, a short word about tasks, or talk.

In this order: a marked block says itself what it is (A1); a short message about tasks needs no
model (A10); all others are for the agent.
"""

import asyncio

from backburner.gateway import wording
from backburner.gateway.asking import take_awaited
from backburner.gateway.commands import LISTED, NO_TASKS, output, stop
from backburner.gateway.desk import Request
from backburner.gateway.markup import only_block
from backburner.gateway.media import FILES_MAX, enclosed, files_of
from backburner.gateway.platform import Message
from backburner.gateway.uploads import kept
from backburner.model.errors import NotAllowed, NotFound
from backburner.tools.dialects.chat import run_marked
from backburner.tools.dialects.tasks import running_and_recent
from backburner.tools.intents.reading import Intent, classify
from backburner.tools.intents.target import One, Several, resolve
from backburner.tools.markers import split
from backburner.work.tools.own_folder import OwnFolder


async def plain(request: Request) -> None:
    """Deal with a message that is no command."""
    assert isinstance(request.heard, Message)
    text = request.heard.text
    if await take_awaited(request, text):
        return
    block = block_in(text)
    if split(block)[1]:
        await _start(request, block)
        return
    if not request.heard.uploads and (intent := classify(text)) is not None:
        await _act(request, intent, text)
        return
    await _talk(request, request.heard)


async def _act(request: Request, intent: Intent, text: str) -> None:
    """Do what a short message asks for (A10), as the command for it does."""
    known = await running_and_recent(request.session)
    match resolve(text, [task.record for task in known]):
        case One(task=meant):
            request.arguments = meant.id
            if intent is Intent.STOP:
                # Taken up again after a restart, the same words may mean another task.
                request.desk.journal.begin(request.heard)
                await stop(request)
            elif intent is Intent.OUTPUT:
                await output(request)
            else:
                await request.reply(wording.line(meant))
        case Several(tasks=several):
            lines = [wording.line(each) for each in several[:LISTED]]
            await request.reply("\n".join(lines) or NO_TASKS)
        case unclear:
            await request.reply(wording.safe(unclear.question))


def block_in(text: str) -> str:
    """The inside of a message that is one code block; else the message."""
    block = only_block(text)
    return text if block is None else block.text


async def _start(request: Request, marked: str) -> None:
    """A shell job, where whoever asks may start one (A9)."""
    if not request.desk.rights.jobs:
        raise NotAllowed(
            "shell commands are not allowed in this chat",
            remedy="whoever runs the gateway can allow them: --shell",
        )
    session = request.session
    try:
        task = await session.task(request.task_id)  # of a gateway that was killed meanwhile
    except NotFound:
        folder = session.folder
        if isinstance(folder, OwnFolder):
            folder.make()
        task = await run_marked(session, marked, cwd=folder, id=request.task_id)
    assert task is not None
    await request.reply_started(task)


async def _talk(request: Request, message: Message) -> None:
    desk, session = request.desk, request.session
    if (hint := desk.talking.hint(request.scope)) is not None:
        await request.reply(hint)
        return
    paths = await kept(message.uploads, session.folder)
    text = message.text.strip() or "(a file)"
    answered = await desk.talking.answer(session, request.task_id, text, paths)
    if answered is None:
        return  # whoever stopped it knows
    said, task = answered
    own = desk.backburner.home.attempt(task.id, task.record.attempt)
    await desk.backburner.tasks.fetch_artifacts(task.record, FILES_MAX)
    files = await asyncio.to_thread(files_of, task.record, own, session.folder)
    said, sent = enclosed(said, files, desk.limits)
    await request.reply(said, files=sent)
