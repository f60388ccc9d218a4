"""From what somebody registers as an agent to one that can be run."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from backburner.model.errors import UsageError
from backburner.work.agents.command import CommandAgent
from backburner.work.agents.protocol import Agent, AgentRequest, Answer
from backburner.work.tools.context import Context
from backburner.work.tools.threads import in_thread

AgentLike = (
    Agent
    | CommandAgent
    | type[Agent]
    | Callable[[AgentRequest, Context], Any]
    | Callable[[Any], Any]
)
"""An agent; a class of agents; a command; a function of the prompt or the request."""

Maker = Callable[[], Agent]
"""Gives the agent for one run."""


def adapted(given: AgentLike) -> Maker | CommandAgent:
    """How to get the agent for one run. UsageError where ``given`` cannot be one.

    A class is made anew for each run; an agent that is there already is used again.
    """
    if isinstance(given, CommandAgent):
        return given
    if isinstance(given, type):
        if not callable(getattr(given, "run", None)):
            raise UsageError(
                f"{given.__name__} cannot be an agent: it has no `run`",
                remedy="give it: async def run(self, request, context)",
            )
        return cast("Maker", given)
    if callable(getattr(given, "run", None)):
        return lambda: cast("Agent", given)
    if not callable(given):
        raise UsageError(
            f"{type(given).__name__} cannot be an agent",
            remedy="use a function of the prompt, or an object with run(request, context)",
        )
    agent = FunctionAgent(given)
    return lambda: agent


class FunctionAgent:
    """A function of ``(prompt)``, ``(request)`` or ``(request, context)``, of either colour.

    The first parameter gets the request where it is called so or is annotated so, or where there
    is a second one; else the prompt.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._takes_context, self._takes_request = _shape(function)
        called = function if inspect.isroutine(function) else type(function).__call__
        self._is_async = inspect.iscoroutinefunction(inspect.unwrap(called))

    async def run(self, request: AgentRequest, context: Context) -> Answer:
        """Call it; one that is not asynchronous runs in a thread."""
        first = request if self._takes_request else request.prompt
        arguments = (first, context) if self._takes_context else (first,)
        if self._is_async:
            return await self._function(*arguments)
        answer = await in_thread(partial(self._function, *arguments), {})
        return await answer if inspect.isawaitable(answer) else answer


def _shape(function: Callable[..., Any]) -> tuple[bool, bool]:
    """Whether it takes the context, and whether it takes the request."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False, False  # of a built-in that does not say: give it the prompt
    places = [
        each
        for each in parameters
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        and (each.default is each.empty)
    ]
    named_only = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
    if any(each.default is each.empty for each in named_only) or not 1 <= len(places) <= 2:  # noqa: PLR2004 - prompt and context
        name = getattr(function, "__name__", type(function).__name__)
        raise UsageError(
            f"{name} cannot be an agent: it must take the prompt, or the request and the context",
            remedy="use: def agent(prompt), or: async def agent(request, context)",
        )
    first = places[0]
    takes_context = len(places) == 2  # noqa: PLR2004 - the same
    annotation = first.annotation
    if isinstance(annotation, str):  # not evaluated
        annotated = annotation.rpartition(".")[2] == "AgentRequest"
    else:
        annotated = annotation is AgentRequest
    return takes_context, takes_context or annotated or first.name == "request"
