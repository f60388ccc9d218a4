"""Sending something to a running task: the answer to its question, else input, else a message."""

import asyncio
from collections.abc import Awaitable, Callable

from backburner.model.errors import InputNotYet, InputRefused, NobodyAsked, NotFound, UsageError
from backburner.model.home import Home
from backburner.model.input import Input
from backburner.model.limits import ANSWER_MAX_BYTES
from backburner.model.questions import Question
from backburner.model.states import Kind, State
from backburner.model.task import Task
from backburner.runtime.election import call_keeper
from backburner.runtime.scribe import whole
from backburner.runtime.unstarted import leave_result
from backburner.store.news import of_task
from backburner.store.protocol import Scope, Store
from backburner.work import handover
from backburner.work import input as job_input
from backburner.work.shell import input_of

_START_S = 30.0
"""For a keeper to come and to start it: a busy machine takes seconds for each process."""

_TURN_S = 5.0
"""For one whose turn has not come: its queue, its time or another task may keep it for hours."""


Give = Callable[[Task, bytes | None], Awaitable[None]]
"""Gives something to the input of a task that runs; None is its end."""


def give_here(home: Home) -> Give:
    """To those of a home folder: they run on this machine."""

    async def give(task: Task, data: bytes | None) -> None:
        folder = home.attempt(task.id, task.attempt)
        if data is None:
            await asyncio.to_thread(job_input.send_eof, folder)
        else:
            await asyncio.to_thread(job_input.send, folder, data)

    return give


async def send(
    store: Store,
    home: Home,
    task_id: str,
    scope: Scope,
    text: str,
    *,
    give: Give,
    question: str | None = None,
    raw: bool = False,
) -> str | None:
    """Answer the oldest open question, or this one; without one, input: a line, unless ``raw``;

    and where it takes no input and is no shell job, a message. Which question was answered, None
    for the others. UsageError where the answer does not fit what was asked for, NobodyAsked where
    there is nothing of all that, or where another session alone asks about it: that is answered by
    its name, and until then input goes ``raw`` only.
    """
    data = _checked(text)
    task = await _task(store, task_id, scope)
    while (asked := await _asked(store, task, question)) is not None:
        await _check_fit(asked, text)
        # By its name: another one may be the oldest by now.
        if await whole(_answer(store, home, task, scope, text=text, asked=asked)):
            return asked.id
        task = await _task(store, task_id, scope)  # somebody else has answered it, or it has ended
    if question is not None:
        raise NobodyAsked(
            f"{task_id} has no open question {question!r}",
            remedy=f"see what it asks: backburner show {task_id}",
        )
    if not raw:
        await _refuse_beside_approval(store, task)
    if takes_messages(task):
        await _send_message(store, home, task, scope, text)
        return None
    started = _with_input(await _started(store, task, scope))
    # What the Enter key of a terminal sends; programs that read keys one by one know no other.
    enter = b"\r" if input_of(task.spec) is Input.PTY else b"\n"
    await give(started, data if raw else data + enter)
    return None


async def send_eof(store: Store, task_id: str, scope: Scope, *, give: Give) -> None:
    """Its input has come to its end."""
    await give(_with_input(await _started(store, await _task(store, task_id, scope), scope)), None)


def takes_messages(task: Task) -> bool:
    """Whether what is sent to it is a message: it reads those where it wants to."""
    return task.kind is not Kind.SHELL and input_of(task.spec) is Input.NONE


async def _send_message(store: Store, home: Home, task: Task, scope: Scope, text: str) -> None:
    number = await store.send_message(task.id, scope, text)
    if number is None:
        raise InputRefused(f"{task.id} has ended", remedy=f"see how: backburner show {task.id}")
    _call_for(home, task)


def _call_for(home: Home, task: Task) -> None:
    """The keeper hands on what is for a process; an application sees for itself."""
    if task.place is None or task.place.worker is None:
        call_keeper(home)


async def _asked(store: Store, task: Task, question: str | None) -> Question | None:
    """The open question of this name, else the oldest that the task itself has asked."""
    for each in await store.questions(task.id, Scope(task.owner)):
        wanted = not each.approval if question is None else each.id == question
        if each.open and wanted and not task.state.terminal:
            return each
    return None


async def _refuse_beside_approval(store: Store, task: Task) -> None:
    """A "yes" that is meant for another session must not become input or a message of the task."""
    for each in await store.questions(task.id, Scope(task.owner)):
        if each.approval and each.open and not task.state.terminal:
            raise NobodyAsked(
                f"{task.id} has asked nothing; it is {each.asker!r} that asks about it, "
                f"in question {each.id}",
                remedy=f"answer that with its id: --question {each.id}, question={each.id!r}; "
                "or send the task input with --raw, raw=True",
            )


async def _answer(
    store: Store, home: Home, task: Task, scope: Scope, *, text: str, asked: Question
) -> bool:
    """False where somebody else has answered it, or it is not asked any more."""
    if await store.answer(task.id, scope, text, question=asked.id) is None:
        return False
    if asked.approval:
        await _leave_files(store, home, task.id, scope)
    _call_for(home, task)
    return True


async def _leave_files(store: Store, home: Home, task_id: str, scope: Scope) -> None:
    """One that was waiting for its start has ended with the answer."""
    task = await _task(store, task_id, scope)
    if task.state.terminal and not task.leftovers:
        leave_result(home, task)
        handover.discard(home, task.id, task.hand_over)


async def _check_fit(question: Question, answer: str) -> None:
    if question.schema is None:
        return
    from backburner.work.fitting import value_of  # slow to load, seldom needed

    # In a thread: both are a stranger's, and it may take a while.
    await asyncio.to_thread(value_of, answer, question.schema)


def _checked(text: object) -> bytes:
    if not isinstance(text, str):
        raise UsageError("what is sent is a text", remedy="turn it into one: str(…)")
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError("what is sent is no UTF-8", remedy="send texts only") from None
    if len(data) > ANSWER_MAX_BYTES:
        raise UsageError(
            f"what is sent is longer than {ANSWER_MAX_BYTES // 1024} KiB",
            remedy="put it into a file and send its name",
        )
    return data


async def _task(store: Store, task_id: str, scope: Scope) -> Task:
    task = await store.get(task_id, scope)
    if task is None:
        raise NotFound(f"no task {task_id!r} in session {scope.session!r}")
    return task


async def _started(store: Store, task: Task, scope: Scope) -> Task:
    """The task, once it has started: who starts one and sends at once is a moment too early.

    One that waits for longer, for its queue or another task, comes back as it is.
    """
    bell = asyncio.Event()
    unsubscribe = store.on_change(bell.set, of_task(task.id))
    try:
        async with asyncio.timeout(_START_S if task.wait is None else _TURN_S):
            while task.state is State.QUEUED and input_of(task.spec) is not Input.NONE:
                bell.clear()
                task = await _task(store, task.id, scope)
                if task.state is State.QUEUED:
                    await bell.wait()
    except TimeoutError:
        pass
    finally:
        unsubscribe()
    return task


def _with_input(task: Task) -> Task:
    """The task, where it can be given some."""
    if task.state.terminal:
        raise InputRefused(f"{task.id} has ended", remedy=f"see how: backburner show {task.id}")
    if input_of(task.spec) is Input.NONE:
        raise NobodyAsked(
            f"{task.id} has asked nothing, and takes no input",
            remedy="start it with --stdin to send it input",
        )
    if task.state is State.QUEUED:
        raise InputNotYet(
            f"{task.id} has not started yet", remedy="send again when it runs; nothing was sent"
        )
    return task
