"""The Python client of MCP with the Tasks extension, in every version on the wire."""

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from mcp import Client, StdioServerParameters
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from mcp.client.session import ClientSession
from mcp.client.stdio import stdio_client
from mcp_types import (
    CallToolResult,
    Implementation,
    NotificationParams,
    Request,
    RequestParams,
    Result,
)
from pydantic import ConfigDict, RootModel

from tests.nursery import nursery
from tests.waiting import wait_until_async

REPOSITORY = Path(__file__).resolve().parent.parent.parent
MCP = ("mcp", "backburner.mcp.service", "backburner.mcp.transports", "backburner.mcp.wrap.program")
"""What a server of ours needs beside what the command line does."""
MODERN = "2026-07-28"
LEGACY = ("2025-06-18", "2025-11-25")


class Anything(RootModel[dict[str, Any]]):
    """A result as it came."""


class Created(Result):
    """The reply that names a task."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class Changed(NotificationParams):
    """What a subscription tells."""

    model_config = ConfigDict(extra="allow")
    task_id: str
    status: str


class AboutTask(RequestParams):
    """Parameters of the three methods."""

    task_id: str
    input_responses: dict[str, Any] | None = None


class TaskRequest(Request[AboutTask, str]):
    """One of the three methods."""

    name_param = "taskId"


class AnyRequest(Request[dict[str, Any] | None, str]):
    """Anything at all."""


Heard = Callable[[Changed], Awaitable[None]]


class TasksExtension(ClientExtension):
    """Declares the extension; polls until the end where nobody asks for the task itself."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, heard: Heard | None = None) -> None:
        self._heard = heard

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Created, resolve=_resolve)]

    def notifications(self) -> list[NotificationBinding[Any]]:
        if self._heard is None:
            return []
        return [
            NotificationBinding(
                method="notifications/tasks", params_type=Changed, handler=self._heard
            )
        ]


async def _resolve(created: Created, context: ClaimContext) -> CallToolResult:
    ended = await until(context.session, created.task_id, "completed")
    return CallToolResult.model_validate(ended["result"])


async def about(
    session: ClientSession, method: str, task_id: str, responses: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Call one of the three methods."""
    params = AboutTask(task_id=task_id, input_responses=responses)
    request = TaskRequest(method=method, params=params)
    return (await session.send_request(request, Anything)).root


async def anything(
    session: ClientSession, method: str, params: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Call any method."""
    request = AnyRequest(method=method, params=params)
    return (await session.send_request(request, Anything)).root


async def until(session: ClientSession, task_id: str, status: str) -> dict[str, Any]:
    """Look until a task has this status, or has ended otherwise."""

    async def there() -> dict[str, Any] | None:
        found = await about(session, "tasks/get", task_id)
        ended = found["status"] in ("completed", "failed", "cancelled")
        return found if ended or found["status"] == status else None

    found = await wait_until_async(there)
    assert found["status"] == status, found
    return found


async def as_task(client: Client, name: str, arguments: dict[str, Any]) -> Created:
    """Call a tool that is to become a task."""
    created = await client.session.call_tool(name, arguments, allow_claimed=True)
    assert isinstance(created, Created), created
    return created


def text_of(result: Any) -> str:
    """What a model reads."""
    if isinstance(result, CallToolResult):
        return "\n".join(each.text for each in result.content if each.type == "text")
    return "\n".join(each["text"] for each in result["content"])


@asynccontextmanager
async def connected(
    to: Any, era: str = MODERN, *, tasks: bool = False, name: str = "tester", **options: Any
) -> AsyncGenerator[Client]:
    """A client of a server in this process, of an address, or of a command."""
    client = Client(
        stdio_client(to) if isinstance(to, StdioServerParameters) else to,
        mode=era if era == MODERN else "legacy",
        client_info=Implementation(name=name, version="1"),
        extensions=options.pop("extensions", [TasksExtension()] if tasks else None),
        read_timeout_seconds=60,
        **options,
    )
    async with client:
        yield client


def program(*words: str, cwd: str | Path = REPOSITORY) -> StdioServerParameters:
    """A Python program of ours that speaks MCP on its standard input and output."""
    if words[0] == "-m" and nursery(*MCP).fits():
        python, *rest = nursery(*MCP).command(*words[1:])
        return StdioServerParameters(command=python, args=rest, env=dict(os.environ), cwd=cwd)
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return StdioServerParameters(command=sys.executable, args=[*words], env=env, cwd=cwd)
