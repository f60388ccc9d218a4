"""A capability of Pydantic AI: the tools, and being told while an agent runs.

What the session is to be told is enqueued into the run: the model reads it with its next request,
whatever it is at, or before it ends. It counts as delivered when the model has answered to it, as
does what rode along with a tool's answer. The rest goes to whoever follows the session up.
"""

import asyncio
import contextlib
import copy
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.agent import AgentRunResult
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import AbstractToolset

from backburner.adapters.pydantic_ai.toolset import tools
from backburner.app import Session, Signal
from backburner.model.errors import BackburnerError
from backburner.model.followup import Busy
from backburner.model.policy import Action
from backburner.tools.toolset import line_of


@dataclass
class _Enqueued:
    signals: list[Signal]
    answered: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Background(AbstractCapability[Any]):
    """For `Agent(capabilities=[…])`."""

    session: Session
    dialect: str | None = None
    _enqueued: dict[str, _Enqueued] = field(
        default_factory=dict[str, _Enqueued], init=False, repr=False
    )
    """What was not yet answered to, by its id in the run."""

    def __post_init__(self) -> None:
        self._tools = tools(self.session, self.dialect)

    def get_toolset(self) -> AbstractToolset[Any]:
        """The tools: the same for every run, because they know how far the model has read."""
        return self._tools

    async def for_run(self, ctx: RunContext[Any]) -> "Background":  # noqa: ARG002
        """Each run has a queue of its own."""
        own = copy.copy(self)
        own._enqueued = {}
        return own

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        """While it runs, tell it."""

        async def tell(signals: list[Signal]) -> None:
            try:
                number = ctx.enqueue("\n".join(line_of(each.record) for each in signals))
            except UserError:
                raise Busy from None  # the run has ended, and in a moment so does this
            assert number is not None
            told = self._enqueued[number] = _Enqueued(signals)
            await told.answered.wait()

        if not self.session.policy.allows(Action.TAKE) or self.session.policy.plays(Action.TAKE):
            return await handler()  # it only looks
        async with self.session.follow_up(tell):
            try:
                return await handler()
            except BaseException:  # what rode along was perhaps not read
                with contextlib.suppress(BackburnerError):
                    await asyncio.shield(self._tools.toolset.close())
                raise

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,  # noqa: ARG002 - the library's signature
        response: ModelResponse,
    ) -> ModelResponse:
        """What is no longer in the queue went with this request, and all that tools answered."""
        await self._tools.toolset.heard()
        waiting = {each.enqueue_id for each in ctx.pending_messages or ()}
        for number in self._enqueued.keys() - waiting:
            told = self._enqueued.pop(number)
            with contextlib.suppress(BackburnerError):  # the follow-up says it again
                for signal in told.signals:
                    await signal.ack()  # here and not there: this may be the last request
            told.answered.set()
        return response
