"""What takes long."""

from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    InputRequiredResult,
)

from tests.mcp.everything.inputs import form, given, value, wanted
from tests.mcp.everything.server import TASKS, Ctx, server, take


@server.tool()
def greet(name: str = "World") -> str:
    """Say hello."""
    return f"Hello, {name}!"


@server.tool()
async def slow_compute(seconds: float = 1, label: str = "") -> str:
    """Take some time."""
    await take(seconds)
    return f"computed {label} in {seconds:g} s"


@server.tool()
async def failing_job(context: Ctx) -> str:
    """Fail after a second, for a client that waits for tasks."""
    can = context.client_capabilities
    if can is None or TASKS not in (can.extensions or {}):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "it takes too long", needed)
    await take(1)
    raise ToolError("it could not be done")


@server.tool()
async def protocol_error_job() -> str:
    """Fail as a JSON-RPC error does, after a second."""
    await take(1)
    raise MCPError(INTERNAL_ERROR, "the machinery broke")


@server.tool()
async def confirm_delete(filename: str, context: Ctx) -> str | InputRequiredResult:
    """Ask before deleting, after a second."""
    answers = given(context, "confirm")
    if answers is None:
        await take(1)
        return wanted({"confirm": form(f"Delete {filename}?", confirm="boolean")})
    return f"deleted {filename}" if value(answers[0], "confirm") else f"kept {filename}"


@server.tool()
async def multi_input(context: Ctx) -> str | InputRequiredResult:
    """Ask two things at once, after a second."""
    answers = given(context, "first", "second")
    if answers is None:
        await take(1)
        first, second = (form(f"Who is the {n}?", name="string") for n in ("first", "second"))
        return wanted({"first": first, "second": second})
    return " and ".join(str(value(each, "name")) for each in answers)


@server.tool()
async def test_tool_with_task(context: Ctx) -> str | InputRequiredResult:
    """Ask for a name, then take some time."""
    answers = given(context, "user_name")
    if answers is None:
        return wanted({"user_name": form("What is your name?", name="string")})
    await take(1)
    return f"Hello, {value(answers[0], 'name')}!"
