"""One run of an agent: its answer as an outcome, and its `close`, exactly once (B7)."""

import asyncio
import inspect
import logging
from dataclasses import replace
from typing import Any

from backburner.model.errors import ToolError
from backburner.model.outcome import Outcome
from backburner.work.agents.adapt import Maker
from backburner.work.agents.media import Media, as_media
from backburner.work.agents.protocol import AgentAnswer, AgentRequest
from backburner.work.tools.context import Context

CLOSE_LIMIT_S = 10.0
"""What an agent may take to close. Its task has an ending by then, and must not wait for ever."""

_HURRIED_CLOSE_S = 0.5
"""What is waited for it where the run is to end at once; it goes on."""

_log = logging.getLogger("backburner.agents")

_closing: set[asyncio.Task[None]] = set()
"""Those that go on though nobody waits any more."""


async def run_agent(make: Maker, request: AgentRequest, context: Context) -> tuple[Outcome, Media]:
    """Run it and close it. What it raises is raised when it is closed."""
    agent = make()
    try:
        answer: Any = agent.run(request, context)
        if inspect.isawaitable(answer):
            answer = await answer
    finally:
        await _close(agent)
    return _outcome(answer)


def _outcome(answer: Any) -> tuple[Outcome, Media]:
    match answer:
        case str():
            return Outcome(result=answer), ()
        case AgentAnswer():
            return Outcome(result=answer.text, usage=dict(answer.usage)), as_media(answer.media)
        case Outcome():
            return replace(answer, images=()), as_media(answer.images)
        case _:
            raise ToolError(
                f"the agent answered with a {type(answer).__name__}, which is no text",
                remedy="it has to return a text, an AgentAnswer or an Outcome",
            )


async def _close(agent: Any) -> None:
    """Close it, also while the task is being canceled; a second cancel hardly waits for it."""
    close = getattr(agent, "close", None)
    if close is None:
        return
    closing = asyncio.create_task(_closed(close), name="backburner-agent-close")
    _closing.add(closing)
    closing.add_done_callback(_closing.discard)
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await asyncio.wait([closing], timeout=_HURRIED_CLOSE_S)
        raise


async def _closed(close: Any) -> None:
    try:
        async with asyncio.timeout(CLOSE_LIMIT_S):
            closed = close()
            if inspect.isawaitable(closed):
                await closed
    except TimeoutError:
        _log.warning("an agent was not closed after %g s", CLOSE_LIMIT_S)
    except Exception:  # noqa: BLE001 - its answer counts, whatever its end is like
        _log.exception("an agent could not be closed")
