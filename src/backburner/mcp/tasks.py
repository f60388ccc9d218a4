"""The methods of the Tasks extension, served from the record: nothing is kept here.

A task is found by its whole id in the session of the client that asks, so what belongs to another
session or owner does not exist.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, RequestParams

from backburner.mcp import extension, view
from backburner.mcp.inputs import answer_of, key_of
from backburner.model import ids
from backburner.model.errors import Ambiguous, InputRefused, NotFound, UsageError
from backburner.model.redaction import redact_text

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    from backburner.app import Backburner, Session, Task
    from backburner.mcp.clients import Clients

_STOP_S = 1.0
"""How long the reply to a cancel waits for the end; the stop is on record at once."""


class TaskParams(RequestParams):
    """Of `tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateParams(TaskParams):
    """Of `tasks/update`."""

    input_responses: dict[str, Any]


class Tasks:
    """The three methods."""

    def __init__(self, backburner: "Backburner", clients: "Clients") -> None:
        self._backburner = backburner
        self._clients = clients
        self._stopping: set[asyncio.Task[Task]] = set()

    def serve_on(self, server: "Server[Any]") -> None:
        """Make them known."""
        server.extensions[extension.TASKS] = {}
        server.add_request_handler("tasks/get", TaskParams, self.get)
        server.add_request_handler("tasks/update", UpdateParams, self.update)
        server.add_request_handler("tasks/cancel", TaskParams, self.cancel)

    async def get(
        self, context: "ServerRequestContext[Any, Any]", params: TaskParams
    ) -> dict[str, Any]:
        """How it stands."""
        task = await self._asked_for(context, params)
        return await self.shown(task, elicits=extension.elicits(context))

    async def update(
        self, context: "ServerRequestContext[Any, Any]", params: UpdateParams
    ) -> dict[str, Any]:
        """Answers to its questions. Those to no open question are ignored."""
        task = await self._asked_for(context, params)
        if task.state.terminal:
            return {}
        for question in await task.questions():
            response = params.input_responses.get(key_of(question))
            if response is None or not question.open or question.approval:
                continue
            try:
                answer = answer_of(question, response)
                if answer is not None:
                    await task.send(answer, question=question.id)
            except UsageError as error:
                raise MCPError(INVALID_PARAMS, redact_text(str(error))) from None
            except InputRefused:
                continue  # somebody was quicker
        return {}

    async def cancel(
        self, context: "ServerRequestContext[Any, Any]", params: TaskParams
    ) -> dict[str, Any]:
        """End it; one that has ended stays as it is."""
        task = await self._asked_for(context, params)
        if not task.state.terminal:
            stopping = asyncio.create_task(task.stop())
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)
            done, _ = await asyncio.wait({stopping}, timeout=_STOP_S)
            for each in done:
                each.result()
        return {}

    async def created(self, session: "Session", task_id: str) -> dict[str, Any]:
        """The reply to a call that goes on. The task is on disk already."""
        task = await found(session, task_id)
        return view.created(task, self._backburner.settings.retention_s)

    async def shown(self, task: "Task", *, elicits: bool) -> dict[str, Any]:
        """All of it, as of now."""
        questions = [] if task.state.terminal else await task.questions()
        return await view.detailed(
            task, questions, self._backburner.settings.retention_s, elicits=elicits
        )

    async def close(self) -> None:
        """Wait no longer for ends; they come all the same."""
        for stopping in [*self._stopping]:
            stopping.cancel()
        if self._stopping:
            await asyncio.wait({*self._stopping})

    async def _asked_for(
        self, context: "ServerRequestContext[Any, Any]", params: TaskParams
    ) -> "Task":
        extension.check_header(context, params.task_id)
        extension.require(context)
        client = await self._clients.of(context)
        return await found(client.session, params.task_id)


async def found(session: "Session", task_id: str) -> "Task":
    """A task by its whole id. -32602 where there is none."""
    if not ids.is_valid(task_id):
        raise extension.no_such_task()
    try:
        task = await session.task(task_id)
    except (NotFound, Ambiguous):
        raise extension.no_such_task() from None
    if task.id != task_id:
        raise extension.no_such_task()
    return task
