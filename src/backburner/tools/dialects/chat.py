"""What a chat does with background jobs without a model: blocks with a marker, short messages.

For the program that holds the chat: what comes back is what to say, to the model or to the person.
"""

from typing import TYPE_CHECKING

from backburner.model.limits import DEFAULT_MAX_RUNTIME_S
from backburner.model.policy import Action
from backburner.model.states import State
from backburner.tools.dialects.manage_bg_jobs import NAME, Jobs, job_record, sentence
from backburner.tools.dialects.tasks import running_and_recent
from backburner.tools.intents.reading import Intent, classify
from backburner.tools.intents.target import One, Several, resolve
from backburner.tools.markers import split
from backburner.tools.prompts import STARTED
from backburner.tools.seen import Answer
from backburner.tools.standing import played

if TYPE_CHECKING:
    import os

    from backburner.app import Session, Task


async def start_marked(
    session: "Session",
    text: str,
    *,
    title: str | None = None,
    max_runtime: float | None = DEFAULT_MAX_RUNTIME_S,
    cwd: "str | os.PathLike[str] | None" = None,
) -> Answer | None:
    """Start a shell block in the background where its first line is a marker (A1); else None."""
    task = await run_marked(session, text, title=title, max_runtime=max_runtime, cwd=cwd)
    if task is None:
        return None
    if task.state.terminal:
        return Answer(sentence(task), job_record(task), is_error=task.state is State.FAILED)
    said = played(task, Action.START) or STARTED.format(id=task.id, tool=NAME)
    return Answer(said, job_record(task))


async def run_marked(
    session: "Session",
    text: str,
    *,
    title: str | None = None,
    max_runtime: float | None = DEFAULT_MAX_RUNTIME_S,
    cwd: "str | os.PathLike[str] | None" = None,
    id: str | None = None,
) -> "Task | None":
    """The same, for who says it in words of their own."""
    command, background = split(text)
    if not background:
        return None
    return await session.run(command, title=title, max_runtime=max_runtime, cwd=cwd, id=id)


async def act_on(session: "Session", text: str) -> Answer | None:
    """Do what a short message asks for of background work (A10); None where it is about something

    else. Where it does not say without doubt which job it means, the answer is a question back.
    """
    intent = classify(text)
    if intent is None:
        return None
    tasks = {task.id: task for task in await running_and_recent(session)}
    jobs = Jobs(session)
    match resolve(text, [task.record for task in tasks.values()]):
        case One(task=meant) if intent is Intent.STOP:
            return await jobs.kill(tasks[meant.id])
        case One(task=meant) if intent is Intent.OUTPUT:
            return await jobs.output(tasks[meant.id])
        case One(task=meant):
            return jobs.listed([tasks[meant.id]])
        case Several(tasks=several):
            return jobs.listed([tasks[each.id] for each in several])
        case unclear:
            records = [job_record(tasks[each.id]) for each in unclear.candidates]
            return Answer(unclear.question, {"jobs": records})
