"""The calls of tools: ours, and those of the application.

A call that takes longer than the budget is parked. It becomes a task for a client that declares
the extension in that request, and the parked plain result for any other.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

from mcp.server.caching import CacheHint
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from mcp_types import Tool as ToolShown

import backburner
from backburner.mcp import extension, progress, results
from backburner.mcp.clients import Client, Clients
from backburner.mcp.listening import Listening
from backburner.mcp.own import OwnTools
from backburner.mcp.reception import Reception, era_gate, guard
from backburner.mcp.tasks import Tasks
from backburner.model.errors import BackburnerError
from backburner.model.redaction import redact_text

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from backburner.app import Backburner
    from backburner.work.tools.registry import Tool

_TOOLS_TTL_MS = 60_000

_INSTRUCTIONS = (
    "Commands that take longer than a few seconds belong in the background: background_run starts"
    " one and returns at once. It goes on when you, this server or the client ends, and you are"
    " told of its end with the answer to your next call of any of these tools. Do not poll."
)


class Service:
    """Answers the calls of tools."""

    def __init__(
        self,
        backburner: "Backburner",
        *,
        session: str | None,
        budget_s: float,
        only_as_tasks: Collection[str],
    ) -> None:
        self._backburner = backburner
        self._budget_s = budget_s
        self._only_as_tasks = frozenset(only_as_tasks)
        self.clients = Clients(backburner, session)
        self.tasks = Tasks(backburner, self.clients)
        self._own = OwnTools(self.tasks, budget_s)

    def server(self) -> Reception:
        """The server, ready to be run on a transport."""
        made = Reception(
            "backburner",
            version=backburner.__version__,
            title="Backburner",
            instructions=_INSTRUCTIONS,
            cache_hints={"tools/list": CacheHint(_TOOLS_TTL_MS, "private")},
            on_list_tools=self._listed,
            on_call_tool=self._called,
            on_subscriptions_listen=Listening(self.tasks, self.clients),
        )
        made.middleware += [guard, era_gate]
        self.tasks.serve_on(made)
        return made

    async def close(self) -> None:
        """Nobody is served any more."""
        await self.tasks.close()
        await self.clients.close()

    async def _listed(
        self, context: "ServerRequestContext[Any, Any]", _: PaginatedRequestParams | None
    ) -> ListToolsResult:
        client = await self.clients.of(context)
        shown = [ToolShown.model_validate(each) for each in client.tools.schemas("mcp")]
        return ListToolsResult(tools=[*shown, *map(_shown, self._registered())])

    def _registered(self) -> "list[Tool]":
        return [tool for tool in self._backburner.registry if tool.function is not None]

    async def _called(
        self, context: "ServerRequestContext[Any, Any]", params: CallToolRequestParams
    ) -> CallToolResult:
        client = await self.clients.of(context)
        given = params.arguments or {}
        if params.name in client.tools.names:
            answered = await self._own.call(context, client, params.name, given)
        elif (tool := self._backburner.registry.find(params.name)) is not None:
            answered = await self._theirs(context, client, tool, given)
        else:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        if answered.get("resultType") == "task":
            # None of the results that a tool has by itself: it is passed on as it is.
            return cast("CallToolResult", answered)
        return CallToolResult.model_validate(answered)

    async def _theirs(
        self,
        context: "ServerRequestContext[Any, Any]",
        client: Client,
        tool: "Tool",
        given: dict[str, Any],
    ) -> dict[str, Any]:
        """A tool of the application."""
        only_as_task = tool.name in self._only_as_tasks and extension.is_modern(context)
        if only_as_task:
            extension.require(context)
        own = tool.budget if tool.budget is not None else self._budget_s
        budget = 0.0 if only_as_task else min(own, self._budget_s)
        try:
            async with progress.told_to(context) as on_progress:
                called = await client.session.invoke(
                    tool.name, given, budget=budget, on_progress=on_progress
                )
        except BackburnerError as error:
            return results.refused(error)
        if called.parked and extension.declared(context):
            return await self.tasks.created(client.session, called.task.id)
        failed = results.error_in(called.result)
        if failed is not None:
            raise MCPError(failed["code"], redact_text(failed["message"]))
        return results.of_call(called, await client.tools.riding_along())


def _shown(tool: "Tool") -> ToolShown:
    return ToolShown.model_validate(
        {
            "name": tool.name,
            "title": tool.display_name,
            "description": tool.description,
            "inputSchema": tool.parameters,
            "annotations": {
                "readOnlyHint": tool.readonly,
                "destructiveHint": tool.destructive,
                "idempotentHint": tool.idempotent,
            },
        }
    )
