"""Tasks: started, found, stopped, talked to."""

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Response, status

from backburner.app.task import Task as Handle
from backburner.model.clock import now, rfc3339
from backburner.model.document import event_document, question_document
from backburner.model.errors import UsageError
from backburner.model.ids import id_for
from backburner.model.states import Kind, State
from backburner.model.task import Task as Record
from backburner.runtime.browsing import Filter, browse
from backburner.runtime.processes import processes_of
from backburner.serve import pages
from backburner.serve.access import (
    Caller,
    Looks,
    Sends,
    SessionName,
    Starts,
    Stops,
    TaskId,
)
from backburner.serve.models.base import NAME_MAX_CHARS
from backburner.serve.models.events import EventList
from backburner.serve.models.start import (
    Send,
    Sent,
    Start,
    StartAgent,
    StartPython,
    StartShell,
    StartTool,
    Stop,
)
from backburner.serve.models.task import (
    ProcessTree,
    QuestionList,
    Task,
    TaskInput,
    TaskPage,
    TaskResult,
)
from backburner.store.protocol import Scope
from backburner.work.shell import input_of
from backburner.work.shown import shown_work

if TYPE_CHECKING:
    from backburner.app import Backburner

router = APIRouter(prefix="/v1", tags=["tasks"])

_EXTRA_S = 2.0
"""A stop is answered when nothing is left, or this long after the grace."""
_LONGEST_S = 30.0

_EVENTS_AT_ONCE = 1000

_PAGE_BYTES = 4 * 1024 * 1024
"""Of results in one page; the others come with the next."""

States = Annotated[
    list[State], Query(alias="state", max_length=6, description="Only in these states.")
]
Kinds = Annotated[list[Kind], Query(alias="kind", max_length=4, description="Only of these kinds.")]
Text = Annotated[
    str, Query(max_length=200, description="In the title, the id or the name of the session.")
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="The same key again gives the task that was started with it the first time.",
    ),
]


async def listed(
    who: Caller, scope: Scope, wanted: Filter, limit: int, cursor: str | None
) -> dict[str, Any]:
    """A page of tasks."""
    backburner = who.service.backburner
    page = await browse(backburner.store, scope, wanted, limit=limit, before=pages.number(cursor))
    items = await asyncio.to_thread(_described, backburner, page.tasks)
    last = page.next if len(items) == len(page.tasks) else page.tasks[len(items) - 1].seq
    return {"items": items, "next": pages.cursor(last)}


def _described(backburner: "Backburner", tasks: list[Record]) -> list[dict[str, Any]]:
    """As many of them as one answer may hold: a result can be a megabyte."""
    items: list[dict[str, Any]] = []
    size = 0
    for task in tasks:
        items.append(backburner.tasks.describe(task))
        size += 0 if task.result is None else len(json.dumps(task.result))
        if size > _PAGE_BYTES:
            break
    return items


def described(who: Caller, record: Record) -> dict[str, Any]:
    """One task as JSON."""
    return who.service.backburner.tasks.describe(record)


def keyed(key: str | None, owner: str, session: str, what: str) -> str | None:
    """The id that belongs to an idempotency key: nobody else's, and not in another session."""
    return None if key is None else id_for(what, owner, session, key)


@router.get("/tasks", response_model=TaskPage)
async def all_tasks(
    *,
    who: Looks,
    state: States = [],  # noqa: B006 - FastAPI makes a new one for each request
    kind: Kinds = [],  # noqa: B006 - the same
    session: Annotated[str | None, Query(min_length=1, max_length=NAME_MAX_CHARS)] = None,
    q: Text = "",
    cursor: pages.Cursor = None,
    limit: pages.Limit = 50,
) -> dict[str, Any]:
    """Every task that the caller may see, newest first."""
    scope = who.scope if session is None else who.session(session).scope
    return await listed(who, scope, Filter(state, kind, q), limit, cursor)


@router.get("/sessions/{session}/tasks", response_model=TaskPage)
async def tasks_of_session(
    *,
    who: Looks,
    session: SessionName,
    state: States = [],  # noqa: B006 - FastAPI makes a new one for each request
    kind: Kinds = [],  # noqa: B006 - the same
    q: Text = "",
    cursor: pages.Cursor = None,
    limit: pages.Limit = 50,
) -> dict[str, Any]:
    """The tasks of one session, newest first."""
    scope = who.session(session).scope
    return await listed(who, scope, Filter(state, kind, q), limit, cursor)


@router.post("/sessions/{session}/tasks", response_model=Task, status_code=status.HTTP_201_CREATED)
async def start(
    who: Starts, session: SessionName, work: Start, response: Response, key: Key = None
) -> dict[str, Any]:
    """Start a task. When the answer comes, it is on disk."""
    here = who.session(session)
    task_id = keyed(key, here.scope.owner, here.name, "task")
    given = work.model_dump(exclude={"kind", "max_runtime_s"})
    given |= {"max_runtime": work.max_runtime_s, "id": task_id}
    match work:
        case StartShell():
            task = await here.run(**given)
        case StartPython():
            task = await here.call(given.pop("call"), given.pop("arguments"), **given)
        case StartTool():
            task = await here.spawn(given.pop("tool"), given.pop("arguments"), **given)
        case StartAgent():
            task = await here.ask(given.pop("prompt"), **given)
    response.headers["Location"] = f"/v1/tasks/{task.id}"
    return described(who, task.record)


@router.get("/tasks/{id}", response_model=Task)
async def one_task(who: Looks, id: TaskId) -> dict[str, Any]:
    """One task."""
    return described(who, (await who.task(id)).record)


@router.post(
    "/tasks/{id}/stop",
    response_model=Task,
    responses={202: {"model": Task, "description": "It was asked to end, and has not yet."}},
)
async def stop(
    who: Stops, id: TaskId, response: Response, how: Annotated[Stop | None, Body()] = None
) -> dict[str, Any]:
    """End a task and everything that it has started; one that has ended is answered as it is."""
    wish = how or Stop.model_validate({})
    task = await who.task(id)
    grace_s = 0.0 if wish.force else wish.grace_s
    try:
        async with asyncio.timeout(min(grace_s + _EXTRA_S, _LONGEST_S)):
            await task.stop(force=wish.force, grace=wish.grace_s)
    except TimeoutError:
        response.status_code = status.HTTP_202_ACCEPTED
        await task.refresh()
    return described(who, task.record)


@router.post("/tasks/{id}/send", response_model=Sent)
async def send(who: Sends, id: TaskId, what: Send) -> dict[str, Any]:
    """Answer its question; else give it input; else, where it is no shell job, a message."""
    if (what.text is None) != what.eof:
        raise UsageError("there is one of text and eof", remedy='send {"text": "…"}')
    task = await who.task(id)
    if what.text is None:
        await task.send_eof()
        return {"question": None}
    return {"question": await task.send(what.text, question=what.question, raw=what.raw)}


@router.post("/tasks/{id}/rerun", response_model=Task, status_code=status.HTTP_201_CREATED)
async def rerun(who: Starts, id: TaskId, response: Response, key: Key = None) -> dict[str, Any]:
    """The same command or call again, as a new task."""
    task = await who.task(id)
    record = task.record
    again: Handle = await task.rerun(id=keyed(key, record.owner, record.session, f"rerun {id}"))
    response.headers["Location"] = f"/v1/tasks/{again.id}"
    return described(who, again.record)


@router.get("/tasks/{id}/history", response_model=EventList)
async def history(
    who: Looks,
    id: TaskId,
    after: Annotated[
        str, Query(pattern=r"^[0-9]{1,18}$", description="Only after this event's number.")
    ] = "0",
) -> dict[str, Any]:
    """What happened to it: the rows that the stream of events is made from."""
    await who.task(id)
    events = await who.service.backburner.store.events(
        id, after=int(after), limit=_EVENTS_AT_ONCE, scope=who.scope
    )
    last = str(events[-1].number) if len(events) == _EVENTS_AT_ONCE else None
    return {"items": [event_document(event) for event in events], "next": last}


@router.get("/tasks/{id}/children", response_model=TaskPage)
async def children(who: Looks, id: TaskId) -> dict[str, Any]:
    """What it has started, and what its own session has: the newest 200."""
    await who.task(id)
    found = await who.service.backburner.store.children(id, who.scope)
    return {"items": [described(who, record) for record in found], "next": None}


@router.get("/tasks/{id}/questions", response_model=QuestionList)
async def questions(who: Looks, id: TaskId) -> dict[str, Any]:
    """What it has asked, and what was asked about it, in its present attempt."""
    task = await who.task(id)
    return {"items": [question_document(each) for each in await task.questions()]}


@router.get("/tasks/{id}/processes", response_model=ProcessTree)
async def processes(who: Looks, id: TaskId) -> dict[str, Any]:
    """Its processes now."""
    task = await who.task(id)
    home = who.service.backburner.home
    found = await asyncio.to_thread(processes_of, home, task.record)
    return {"at": rfc3339(now()), "items": [each.document() for each in found]}


@router.get("/tasks/{id}/result", response_model=TaskResult)
async def result(who: Looks, id: TaskId) -> dict[str, Any]:
    """How it ended."""
    document = described(who, (await who.task(id)).record)
    return {name: document[name] for name in TaskResult.model_fields}


@router.get("/tasks/{id}/input", response_model=TaskInput)
async def given(who: Looks, id: TaskId) -> dict[str, Any]:
    """What it was started with; the values of variables are left out, and secrets hidden."""
    spec = (await who.task(id)).record.spec
    return {
        "text": shown_work(spec),
        "takes_input": input_of(spec).value,
        "separate_stderr": bool(spec.get("separate_stderr")),
        "env": sorted(spec.get("env", {})),
        **{
            name: spec.get(name)
            for name in ("command", "call", "tool", "agent", "prompt", "arguments", "cwd")
        },
    }
