"""`subscriptions/listen`: the changes of tasks as they happen, on the stream of one request.

Each notification is what `tasks/get` would answer at that moment. The first comes at once: a task
may have ended before somebody listens.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    Notification,
    ServerNotification,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from backburner.mcp import extension
from backburner.mcp.tasks import Tasks, found
from backburner.model.errors import NotFound

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from backburner.app import Task
    from backburner.mcp.clients import Clients

_STREAMS_MAX = 256
_TASKS_MAX = 64
"""What one stream may listen to."""

_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_CHANGED = "notifications/tasks"


class Listening:
    """Serves one stream for each request."""

    def __init__(self, tasks: Tasks, clients: "Clients") -> None:
        self._tasks = tasks
        self._clients = clients
        self._streams = 0

    async def __call__(
        self,
        context: "ServerRequestContext[Any, Any]",
        params: SubscriptionsListenRequestParams,  # noqa: ARG002 - it drops what is not its own
    ) -> SubscriptionsListenResult:
        """Until the client goes, or the last of its tasks has ended."""
        if context.request_id is None:
            raise MCPError(INVALID_REQUEST, "subscriptions/listen needs a request id")
        tasks = await self._found(context, _task_ids(context.params))
        if self._streams >= _STREAMS_MAX:
            raise MCPError(INTERNAL_ERROR, f"there are {_STREAMS_MAX} subscriptions, the limit")
        self._streams += 1
        try:
            await self._stream(context, tasks)
        finally:
            self._streams -= 1
        return SubscriptionsListenResult(_meta={SUBSCRIPTION_ID_META_KEY: context.request_id})

    async def ours(self, context: "ServerRequestContext[Any, Any]") -> list[str]:
        """Which of the tasks that a request wants to listen to are here."""
        return [task.id for task in await self._found(context, _task_ids(context.params))]

    async def follow(self, context: "ServerRequestContext[Any, Any]") -> None:
        """Tell of them, on a stream that somebody else has acknowledged."""
        tasks = await self._found(context, _task_ids(context.params))
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(self._follow(context, task))

    async def _found(
        self, context: "ServerRequestContext[Any, Any]", task_ids: list[str]
    ) -> "list[Task]":
        if not task_ids:
            return []
        extension.require(context)
        client = await self._clients.of(context)
        tasks: list[Task] = []
        for each in task_ids:
            try:
                tasks.append(await found(client.session, each))
            except MCPError:
                continue  # what is not acknowledged is not listened to
        return tasks

    async def _stream(self, context: "ServerRequestContext[Any, Any]", tasks: "list[Task]") -> None:
        # Of tools and the rest nothing ever changes here, so that is not promised.
        honored = {"taskIds": [task.id for task in tasks]} if tasks else {}
        await _notify(context, _ACKNOWLEDGED, {"notifications": honored})
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(self._follow(context, task))
        if not tasks:
            await asyncio.Event().wait()

    async def _follow(self, context: "ServerRequestContext[Any, Any]", task: "Task") -> None:
        elicits = extension.elicits(context)
        told: dict[str, Any] | None = None
        async for _ in task.events():
            try:
                await task.refresh()
                shown = await self._tasks.shown(task, elicits=elicits)
            except NotFound:
                return  # it was kept for long enough
            news = {name: shown[name] for name in shown if name not in ("ttlMs", "pollIntervalMs")}
            if news != told:
                told = news
                await _notify(context, _CHANGED, shown)


async def _notify(
    context: "ServerRequestContext[Any, Any]", method: str, params: dict[str, Any]
) -> None:
    stamped = {**params, "_meta": {SUBSCRIPTION_ID_META_KEY: context.request_id}}
    notification = Notification[dict[str, Any], str](method=method, params=stamped)
    await context.session.send_notification(
        cast("ServerNotification", notification), related_request_id=context.request_id
    )


def _task_ids(params: Mapping[str, Any] | None) -> list[str]:
    wanted = (params or {}).get("notifications")
    given = cast("dict[str, Any]", wanted).get("taskIds") if isinstance(wanted, dict) else None
    if given is None:
        return []
    if not isinstance(given, list):
        raise MCPError(INVALID_PARAMS, "taskIds is a list")
    listed = cast("list[Any]", given)
    if len(listed) > _TASKS_MAX or not all(isinstance(each, str) for each in listed):
        raise MCPError(INVALID_PARAMS, f"taskIds has at most {_TASKS_MAX} ids of tasks")
    return [*dict.fromkeys(cast("list[str]", listed))]
