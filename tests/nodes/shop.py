"""Tools and agents of an application, for `backburner worker --tools tests.nodes.shop`."""

import asyncio
import os
import secrets
from pathlib import Path

from backburner import AgentRequest, Backburner, CommandAgent, Context, tool
from tests.waiting import wait_until_async


async def _hold(context: Context, folder: str) -> str:
    """Until somebody says go; how often it began, and where it was ended, is seen in the folder."""
    place = Path(folder)
    name = f"{context.task}-{os.getpid()}-{secrets.token_hex(2)}"
    (place / f"began-{name}").touch()
    print("holds")
    try:
        await wait_until_async((place / "go").exists, timeout=600)
    except asyncio.CancelledError:
        (place / f"cut-{name}").touch()
        raise
    finally:
        (place / f"over-{name}").touch()
    return "held"


@tool(background=True, idempotent=True)
async def hold(context: Context, folder: str) -> str:
    """May be taken up again."""
    return await _hold(context, folder)


@tool(background=True)
async def hold_once(context: Context, folder: str) -> str:
    """May not."""
    return await _hold(context, folder)


@tool(background=True)
def shout(text: str, times: int = 1) -> str:
    """Blocks, as many tools do."""
    print(f"shouts {text}")
    return text.upper() * times


@tool(background=True)
def log_in(password: str) -> bool:
    return password == "hunter2"


@tool(background=True)
async def ask_name(context: Context) -> str:
    return f"it is called {await context.ask('what is it called?')}"


@tool(background=True)
async def echo_message(context: Context) -> str:
    context.progress(1, 2)
    return await context.receive()


@tool(background=True)
async def where(context: Context) -> str:
    return str(context.folder)


async def parent(request: AgentRequest, context: Context) -> str:
    """Starts something that would last for ever, and answers."""
    child = await request.session.spawn("hold_once", {"folder": request.prompt})
    await wait_until_async(lambda: any(Path(request.prompt).glob("began-*")))
    return f"asked for {child.id}"


async def patient(request: AgentRequest, context: Context) -> str:
    """Is there when its machine dies."""
    return await _hold(context, request.prompt)


async def size_up(request: AgentRequest, context: Context) -> str:
    """Says what came with the prompt."""
    return " ".join(
        f"{each.name} {each.media_type} {len(each.data)} {sum(each.data) % 251}"
        for each in request.attachments
    )


def register(backburner: Backburner) -> None:
    backburner.agent("size_up", size_up)
    backburner.agent(
        "program",
        CommandAgent(["sh", "-c", 'echo "$WHO says: $1"; env >&2', "-"], env={"WHO": "the worker"}),
    )
    backburner.agent("parent", parent)
    backburner.agent("patient", patient)
