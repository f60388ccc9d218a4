"""Tools that the conformance suite looks for by their names, and some that our own tests call."""

import asyncio
from pathlib import Path
from typing import Any

from backburner import Context, Image, InternalError, Outcome, Registry, ToolError
from backburner.mcp import protocol_error
from backburner.work.tools.tool import tool
from tests.waiting import pause_async, wait_until_async

_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)

_CONFIRM = {"type": "object", "properties": {"confirm": {"type": "boolean"}}}


@tool
def greet(name: str = "World") -> str:
    """Say hello."""
    return f"Hello, {name}!"


@tool(background=True, idempotent=True)
async def slow_compute(context: Context, seconds: float = 1, label: str = "") -> str:
    """Take some time."""
    context.status(f"computing {label}")
    await pause_async(seconds, because="it is to take this long")
    return f"computed {label} in {seconds:g} s"


@tool(background=True)
async def hold(path: str) -> str:
    """Wait for a file."""
    await wait_until_async(Path(path).exists, timeout=100)
    return "held"


@tool(background=True)
async def failing_job() -> str:
    """Fail after a second."""
    await pause_async(1, because="it is to outlive the budget")
    raise ToolError("it could not be done")


@tool(background=True)
async def protocol_error_job() -> Outcome:
    """Fail as a JSON-RPC error does."""
    await pause_async(1, because="it is to outlive the budget")
    return protocol_error("the machinery broke")


@tool(background=True)
async def confirm_delete(context: Context, filename: str) -> str:
    """Ask before deleting."""
    answer = await context.ask(f"Delete {filename}?", schema=_CONFIRM)
    return f"deleted {filename}" if answer.get("confirm") else f"kept {filename}"


@tool(background=True)
async def multi_input(context: Context) -> dict[str, Any]:
    """Ask two things at once."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    first, second = await asyncio.gather(
        context.ask("Who is the first?", schema=schema),
        context.ask("Who is the second?", schema=schema),
    )
    return {"first": first["name"], "second": second["name"]}


@tool(background=True)
async def ask_plainly(context: Context) -> str:
    """Ask for any text."""
    return f"you said {await context.ask('What now?')}"


@tool(background=True)
async def test_tool_with_task(user_name: str) -> str:
    """Take a name that was asked for before, and some time."""
    await pause_async(1, because="it is to outlive the budget")
    return f"Hello, {user_name}!"


@tool
def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> Outcome:
    """Give a picture."""
    return Outcome(images=(Image(_PIXEL),))


@tool
def test_error_handling() -> str:
    """Fail at once."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool
async def test_tool_with_progress(context: Context) -> str:
    """Say how far it is, three times as it is to be said, and once as it is not."""
    for percent in (0, 50, 40, 100):
        context.progress(percent, 100)
    return "there"


@tool
def test_missing_capability() -> str:
    """Want a client that can sample."""
    return "it can"


@tool
async def test_streaming_elicitation(context: Context) -> str:
    """Ask while it runs."""
    return await context.ask("What now?")


@tool
def test_logging_tool() -> str:
    """Log nothing, for nobody has asked for it."""
    return "done"


@tool
def leak(password: str) -> str:
    """Fail with what it was given, and with what nobody may see."""
    raise RuntimeError(f"cannot log in with {password}, api_key=sk-live-0123456789abcdef")


@tool(background=True)
async def break_down() -> str:
    """Fail for a reason that is nobody's business, after the budget."""
    await pause_async(1, because="it is to outlive the budget")
    raise InternalError("the database is at 10.0.0.7")


REGISTRY = Registry(
    [
        greet, slow_compute, hold, failing_job, protocol_error_job, confirm_delete, multi_input,
        ask_plainly, test_tool_with_task, test_simple_text, test_image_content,
        test_error_handling, test_missing_capability, test_streaming_elicitation,
        test_logging_tool, test_tool_with_progress, leak, break_down,
    ]
)  # fmt: skip
"""All of them."""

ONLY_AS_TASKS = ("failing_job",)
