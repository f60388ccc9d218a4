"""A server to wrap, as anybody might have written it: it knows nothing of us.

`python wrapped.py [--http PORT] [--clash]`. It notes each start and each cancelled call in the
file that WRAPPED_NOTES names.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import (
    AudioContent,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ImageContent,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

server = MCPServer("wrapped", instructions="Be kind.")


class Sum(BaseModel):
    total: int


class Colour(BaseModel):
    colour: str


async def nap() -> None:
    await asyncio.sleep(0.05)  # noqa: TID251 - a server that polls, as many do


def note(text: str) -> None:
    if path := os.environ.get("WRAPPED_NOTES"):
        with open(path, "a") as notes:
            notes.write(f"{text}\n")


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool()
def variables() -> list[str]:
    """The names of those it was started with."""
    return sorted(os.environ)


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool()
async def until(path: str, context: Context[Any, Any]) -> str:
    """Wait until a file has a text, and report progress meanwhile."""
    looks = 0
    file = Path(path)
    try:
        while not (file.exists() and file.read_text()):  # it is there before what is written to it
            looks += 1
            await context.report_progress(looks, message="looking")
            await nap()
    except asyncio.CancelledError:
        note(f"cancelled {path}")
        raise
    return f"found {file.read_text()}"


@server.tool()
async def sum_until(path: str) -> Sum:
    """A sum, when a file is there."""
    while not Path(path).exists():
        await nap()
    return Sum(total=7)


@server.tool()
async def fail(text: str) -> str:
    """Fail."""
    raise ToolError(text)


@server.tool()
async def refuse(path: str) -> str:
    """Fail as a JSON-RPC error does, when a file is there."""
    while not Path(path).exists():
        await nap()
    raise MCPError(-32099, "not like this", {"path": path})


@server.tool()
async def show(path: str) -> CallToolResult:
    """Give a picture and a sound, when a file is there."""
    while not Path(path).exists():
        await nap()
    picture = ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
    return CallToolResult(content=[picture, AudioContent(data="UklGRg==", mime_type="audio/wav")])


@server.tool()
async def die(path: str | None = None) -> str:
    """Die, at once or when a file is there."""
    while path is not None and not Path(path).exists():
        await nap()
    os._exit(3)


@server.tool()
async def complain(text: str) -> str:
    """Write to standard error."""
    print(text, file=sys.stderr, flush=True)
    return "complained"


@server.tool()
async def sample(text: str, context: Context[Any, Any]) -> str:
    """Ask the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    session = context.session
    answer = await session.create_message([message], max_tokens=10)  # pyright: ignore[reportDeprecated]
    content = answer.content
    return content.text if isinstance(content, TextContent) else "no text"


@server.tool()
async def elicit(context: Context[Any, Any]) -> str:
    """Ask the person."""
    answer = await context.elicit("Which colour?", Colour)
    return answer.data.colour if answer.action == "accept" else answer.action


@server.tool()
async def ask_until(path: str, context: Context[Any, Any]) -> str | InputRequiredResult:
    """Ask the person in the way of 2026-07-28, when a file is there."""
    while not Path(path).exists():
        await nap()
    if not context.input_responses:
        schema: Any = {"type": "object", "properties": {"colour": {"type": "string"}}}
        asked = ElicitRequestFormParams(message="Which colour?", requested_schema=schema)
        return InputRequiredResult(
            input_requests={"colour": ElicitRequest(params=asked)}, request_state="state"
        )
    answer: Any = context.input_responses["colour"]
    return f"{answer.content['colour']} {context.request_state}"


@server.tool()
async def log(text: str, context: Context[Any, Any]) -> str:
    """Send a log message."""
    await context.info(text)  # pyright: ignore[reportDeprecated]
    return "logged"


@server.tool()
async def change(uri: str, context: Context[Any, Any]) -> str:
    """Tell whoever listens that a resource has changed."""
    await context.notify_resource_updated(uri)
    return "changed"


@server.tool()
def whoami() -> str:
    """The process."""
    return str(os.getpid())


@server.resource("note://{name}")
def read_note(name: str) -> str:
    return f"the note {name}"


@server.prompt()
def greet(name: str) -> str:
    return f"Greet {name}."


if "--clash" in sys.argv:

    @server.tool()
    def background_list() -> str:
        """Of the wrapped server itself."""
        return "theirs"


if __name__ == "__main__":
    note(f"started {os.getpid()}")
    if "--http" in sys.argv:
        server.run("streamable-http", port=int(sys.argv[sys.argv.index("--http") + 1]))
    else:
        server.run()
