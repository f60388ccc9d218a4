"""For the tool runner of the Anthropic SDK: `beta.messages.tool_runner(tools=anthropic.tools(…))`,
of an asynchronous client.
"""

from typing import cast

from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, ToolError
from anthropic.types.beta import BetaToolParam, BetaToolUnionParam

from backburner.app import Session
from backburner.tools.seen import Offer
from backburner.tools.toolset import Toolset


def tools(session: Session, dialect: str | None = None) -> list[BetaAsyncBuiltinFunctionTool]:
    """The tools of this session."""
    toolset = session.toolset(dialect)
    return [BackgroundTool(toolset, offer) for offer in toolset.offers]


class BackgroundTool(BetaAsyncBuiltinFunctionTool):
    """One of them: it takes what the model gives as it is, and checks it in its own words."""

    def __init__(self, toolset: Toolset, offer: Offer) -> None:
        self._toolset = toolset
        self._offer = offer

    def to_dict(self) -> BetaToolUnionParam:
        """As it goes to the model."""
        return cast("BetaToolParam", self._offer.document("anthropic"))

    async def call(self, input: object) -> str:
        """Carry it out; an error is a result that is marked as one."""
        answer = await self._toolset.call(self._offer.name, input)
        if answer.is_error:
            raise ToolError(answer.text)
        return answer.text
