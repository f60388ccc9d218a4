"""One run of an agent: its answer as an outcome, and its `close`, exactly once (B7)."""

import asyncio
import inspect
import logging
from dataclasses import replace
from functools import partial
from typing import Any

from backburner.model.errors import ToolError
from backburner.model.limits import RESULT_MAX_BYTES
from backburner.model.outcome import Outcome
from backburner.work.agents.adapt import Maker
from backburner.work.agents.media import Media, as_media
from backburner.work.agents.protocol import AgentAnswer, AgentRequest
from backburner.work.tools.context import Context
from backburner.work.tools.threads import in_thread

CLOSE_LIMIT_S = 10.0
"""What an agent may take to close. Its task has an ending by then, and must not wait for ever."""

_HURRIED_CLOSE_S = 0.5
"""What is waited for it where the run is to end at once; it goes on."""

TEXT_MAX_BYTES = RESULT_MAX_BYTES // 2
"""Of an answer: as JSON it may be longer, and the names of files come beside it."""

_CUT = "\n[the rest is left out]"

_log = logging.getLogger("backburner.agents")

_closing: set[asyncio.Task[None]] = set()
"""Those that go on though nobody waits any more."""


async def run_agent(make: Maker, request: AgentRequest, context: Context) -> tuple[Outcome, Media]:
    """Run it and close it. What it raises is raised when it is closed."""
    agent = make()
    try:
        answer = await _run(agent, request, context)
    except KeyboardInterrupt as error:  # its own, and no Ctrl-C: it must not end the application
        raise RuntimeError("the agent raised KeyboardInterrupt") from error
    finally:
        await _close(agent)
    return _outcome(answer)


async def _run(agent: Any, request: AgentRequest, context: Context) -> Any:
    """Its answer; a `run` that is a plain function goes to a thread, while the loop goes on."""
    if inspect.iscoroutinefunction(inspect.unwrap(agent.run)):
        return await agent.run(request, context)
    answer = await in_thread(partial(agent.run, request, context), {})
    return await answer if inspect.isawaitable(answer) else answer


def _outcome(answer: Any) -> tuple[Outcome, Media]:
    match answer:
        case str():
            return Outcome(result=_within(answer)), ()
        case AgentAnswer():
            outcome = Outcome(result=_within(answer.text), usage=answer.usage)
            return outcome, as_media(answer.media)
        case Outcome():
            outcome = replace(answer, result=_within(answer.result), images=())
            return outcome, as_media(answer.images)
        case _:
            raise ToolError(
                f"the agent answered with a {type(answer).__name__}, which is no text",
                remedy="it has to return a text, an AgentAnswer or an Outcome",
            )


def _within(text: Any) -> Any:
    """The beginning of a text that is too long for a record: it is worth more than no answer."""
    if not isinstance(text, str):
        return text
    data = text.encode(errors="replace")
    if len(data) <= TEXT_MAX_BYTES:
        return text
    return f"{data[: TEXT_MAX_BYTES - len(_CUT)].decode(errors='ignore')}{_CUT}"


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
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        _log.exception("an agent could not be closed")
    except BaseException:  # noqa: BLE001 - its answer counts, whatever its end is like
        _log.exception("an agent could not be closed")
