"""A server of ours before another one: everything passes, but for what makes calls go on.

It is the server that our own tools have (`reception`, `clients`, `tasks`, `listening`), with one
thing before it: what is not ours goes to the wrapped server, untouched and unread.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

import backburner
from backburner.mcp import extension, results
from backburner.mcp.clients import Client, Clients
from backburner.mcp.listening import Listening
from backburner.mcp.own import OwnTools
from backburner.mcp.reception import Reception, guard
from backburner.mcp.tasks import Tasks
from backburner.mcp.wrap.asked import Asked
from backburner.mcp.wrap.line import Line
from backburner.mcp.wrap.lines import Lines
from backburner.mcp.wrap.meta import Json, meta_of
from backburner.mcp.wrap.server import Server
from backburner.mcp.wrap.upstream import ServerGone
from backburner.model.errors import BackburnerError
from backburner.tools.seen import Answer

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from backburner.app import Backburner

SIGNALS_KEY = "backburner/signals"
"""In `_meta` of a result: what rides along with it, for programs."""

_OURS = ("tasks/get", "tasks/update", "tasks/cancel")


class Wrapping:
    """Serves all clients of one wrapped server."""

    def __init__(
        self,
        backburner: "Backburner",
        server: Server,
        *,
        session: str | None,
        budget_s: float | None,
    ) -> None:
        """``session`` is None for one for each client and folder."""
        self._clients = Clients(backburner, session)
        self._tasks = Tasks(backburner, self._clients)
        self._listening = Listening(self._tasks, self._clients)
        self._own = OwnTools(self._tasks, budget_s)
        self._lines = Lines(self._clients, lambda: Line(server, backburner.registry, budget_s))

    def server(self) -> Reception:
        """The server, ready to be run on a transport."""
        made = Reception(
            "backburner",
            version=backburner.__version__,
            on_list_tools=_never_reached,
            on_call_tool=self._own_called,
            on_subscriptions_listen=self._listening,
        )
        made.middleware += [guard, self._relay]
        self._tasks.serve_on(made)
        return made

    async def go_on(self) -> bool:
        """All clients are gone: whether something goes on in the background."""
        await self._clients.close()
        return await self._lines.go_on()

    async def finished(self) -> None:
        """Wait for what goes on in the background."""
        await self._lines.finished()

    async def close(self) -> None:
        """End every wrapped server."""
        await self._tasks.close()
        await self._lines.close()

    async def _relay(
        self, ctx: "ServerRequestContext[Any, Any]", call_next: "CallNext"
    ) -> "HandlerResult":
        line = await self._lines.of(ctx)
        if ctx.request_id is None:
            line.told_by_client(ctx.method, ctx.params)
            return None
        asked = Asked(ctx)
        return await line.asked_by_client(asked, lambda: self._answer(line, asked, call_next))

    async def _answer(self, line: Line, asked: Asked, call_next: "CallNext") -> Json:
        match asked.method:
            case "ping" if not asked.is_modern:
                return {}
            case "initialize" if asked.is_modern and asked.context.request is not None:
                raise MCPError(METHOD_NOT_FOUND, "Method not found", asked.method)
            case "initialize" | "server/discover":
                return await line.introduced(asked)
            case "tools/list":
                return await line.listed(await self._clients.of(asked.context), asked.params)
            case "tools/call":
                return await self._called(line, asked, call_next)
            case "subscriptions/listen" if asked.is_modern:
                return await self._listened(line, asked, call_next)
            case method if method in _OURS and asked.is_modern:
                return await self._about_task(line, asked, call_next)
            case _:
                return await line.passed(asked)

    # Calls

    async def _called(self, line: Line, asked: Asked, call_next: "CallNext") -> Json:
        client = await self._clients.of(asked.context)
        try:
            catalogue = await line.catalogue(client, asked)
            name = str(asked.params.get("name"))
            if (own := catalogue.own(name)) is not None:
                params = {**asked.params, "name": own}
                return cast("Json", await call_next(replace(asked.context, params=params)))
            await client.tools.heard()
            if catalogue.has(name):
                answer = await self._wrapped_called(line, client, asked)
            else:
                answer = await line.passed(asked)
        except ServerGone as error:
            answer = results.failed(str(error))
        return await _with_signals(client, answer)

    async def _wrapped_called(self, line: Line, client: Client, asked: Asked) -> Json:
        try:
            call, called = await line.calls.call(client.session, asked)
        except BackburnerError as error:
            return results.refused(error)
        if called.parked:
            if extension.declared(asked.context):
                return await self._tasks.created(client.session, called.task.id)
            return results.parked(called)
        if call.error is not None:
            raise call.error
        if call.answer is not None:
            return call.answer
        return results.failed(call.gone or called.error or "it ended without an answer")

    async def _own_called(
        self, context: "ServerRequestContext[Any, Any]", params: CallToolRequestParams
    ) -> CallToolResult:
        client = await self._clients.of(context)
        answered = await self._own.call(context, client, params.name, params.arguments or {})
        if answered.get("resultType") == "task":
            return cast("CallToolResult", answered)
        return CallToolResult.model_validate(answered)

    # Tasks

    async def _about_task(self, line: Line, asked: Asked, call_next: "CallNext") -> Json:
        """One of ours, or else one that the server has made itself."""
        try:
            return cast("Json", await call_next(asked.context))
        except MCPError as ours:
            if ours.code != INVALID_PARAMS:
                raise
            try:
                return await line.passed(asked)
            except MCPError as theirs:
                raise (ours if theirs.code == METHOD_NOT_FOUND else theirs) from None

    async def _listened(self, line: Line, asked: Asked, call_next: "CallNext") -> Json:
        asked.tasks = await self._listening.ours(asked.context)
        if not asked.tasks:
            return await line.passed(asked)

        async def follow() -> Json:
            if asked.acknowledged.is_set():
                await self._listening.follow(asked.context)
                return {}
            return cast("Json", await call_next(asked.context))

        return await line.listened(asked, follow)


async def _with_signals(client: Client, answer: Json) -> Json:
    if answer.get("resultType", "complete") != "complete" or "content" not in answer:
        return answer  # not the end of the call, or nothing that we know
    riding = await client.tools.accompany(Answer(""))
    if not riding.text:
        return answer
    told = {"type": "text", "text": riding.text}
    meta = {**meta_of(answer), SIGNALS_KEY: riding.data["signals"]}
    return {**answer, "content": [*answer["content"], told], "_meta": meta}


async def _never_reached(
    _: "ServerRequestContext[Any, Any]", __: PaginatedRequestParams | None
) -> ListToolsResult:
    """The package looks for a list of tools before it checks the headers of a call."""
    return ListToolsResult(tools=[])
