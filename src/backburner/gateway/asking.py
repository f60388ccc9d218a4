"""Questions of tasks, answered from a chat: by command, or by the buttons below the question.

A plain message is never taken for an answer by itself: it may be meant for the agent, and an answer
cannot be taken back. Whoever presses Answer says that the next one is.
"""

import contextlib
from typing import TYPE_CHECKING

from backburner.gateway import wording
from backburner.gateway.desk import Request
from backburner.gateway.talking import beside
from backburner.model.errors import NobodyAsked, NotFound
from backburner.tools.dialects.tasks import found

REMEDY = "/tasks lists the tasks of this chat"

if TYPE_CHECKING:
    from backburner.app import Task
    from backburner.model.questions import Question


async def answer(request: Request) -> None:
    """``ID TEXT``: the oldest question of that task that is open."""
    reference, *rest = request.arguments.split(maxsplit=1)
    task = await _task(request, reference)
    text = rest[0] if rest else ""
    if not text.strip():
        await request.reply(f"What is the answer? Write: /answer {task.id} TEXT")
        return
    asked = [each for each in await task.questions() if each.open]
    own = [each for each in asked if not each.approval]
    await _send(request, task, (own or asked or [None])[0], text.strip())


async def await_answer(request: Request, task_id: str, tag: str) -> None:
    """Somebody pressed Answer: their next plain message is it."""
    open_one = await _question(request, task_id, tag)
    if open_one is None:
        await request.reply("Nobody waits for that answer any more.")
        return
    _, asked = open_one
    request.desk.journal.await_answer(_who(request), task_id, asked.id)
    await request.reply(f"Write your answer: your next message goes to {task_id}.")


async def choose(request: Request, task_id: str, tag: str, number: int) -> None:
    """Somebody pressed one of the answers."""
    open_one = await _question(request, task_id, tag)
    options = wording.choices(open_one[1]) if open_one is not None else []
    if open_one is None or not 0 <= number < len(options):
        await request.reply("Nobody waits for that answer any more.")
        return
    await _send(request, *open_one, options[number])


async def take_awaited(request: Request, text: str) -> bool:
    """Whether this message was the answer that somebody had announced."""
    awaited = request.desk.journal.take_awaited(_who(request))
    if awaited is None:
        return False
    task = await _task(request, awaited[0])
    asked = [each for each in await task.questions() if each.id == awaited[1]]
    if not asked or not asked[0].open:
        await request.reply("Nobody waits for that answer any more.")
        return True
    await _send(request, task, asked[0], text)
    return True


def _who(request: Request) -> str:
    return f"{request.scope.owner} {request.scope.session}"


async def _task(request: Request, reference: str) -> "Task":
    """Of the chat, or a turn of its agent: that may ask, too."""
    try:
        return await found(request.session, reference, remedy=REMEDY)
    except NotFound:
        turns = beside(request.desk.backburner, request.scope)
        with contextlib.suppress(NotFound):
            return await turns.task(reference)
        raise


async def _question(request: Request, task_id: str, tag: str) -> "tuple[Task, Question] | None":
    try:
        task = await _task(request, task_id)
    except NotFound:
        return None
    for each in await task.questions():
        if each.open and wording.question_tag(each) == tag:
            return task, each
    return None


async def _send(request: Request, task: "Task", asked: "Question | None", text: str) -> None:
    if asked is None:
        raise NobodyAsked(f"{task.id} asks nothing at present", remedy="/tasks lists the tasks")
    request.desk.journal.begin(request.heard)
    await task.send(text, question=asked.id)
    await request.reply(f"Told {task.id}.")
