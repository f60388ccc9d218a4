"""What an agent is: something that turns a prompt into an answer.

One that needs nothing else is a plain function; see `adapt`. Here are the values that pass between
it and whoever runs it.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from backburner.model.outcome import Image, Outcome
from backburner.model.values import value
from backburner.work.agents.attachments import Attachment
from backburner.work.tools.context import Context

if TYPE_CHECKING:
    from backburner.work.tools.registry import Registry


@value
class AgentRequest:
    """What an agent is asked."""

    prompt: str
    attachments: Sequence[Attachment] = ()
    session: Any = None
    """The agent's own session, for starting work of its own; None where there is no record."""
    model: str | None = None
    """The model that the caller wishes, such as ``openai:gpt-5``; None for the agent's own."""
    registry: "Registry | None" = None
    """The caller's tools."""


@value
class AgentAnswer:
    """What an agent answers."""

    text: str
    media: Sequence[Image | str | os.PathLike[str]] = ()
    """Pictures, and files by their paths: a copy of each is kept with the task."""
    usage: Mapping[str, int] = field(default_factory=dict[str, int])
    """What a model has used for it, such as ``input_tokens``."""


Answer = AgentAnswer | Outcome | str


class Agent(Protocol):
    """Turns a prompt into an answer.

    It may have ``async def close(self) -> None`` too: that is awaited exactly once after each run,
    however the run ended.
    """

    async def run(self, request: AgentRequest, context: Context) -> Answer:
        """Answer. What is raised fails the task, with its type and text."""
        ...
