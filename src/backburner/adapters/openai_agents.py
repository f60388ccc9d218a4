"""For the OpenAI Agents SDK: `Agent(tools=openai_agents.tools(session))`.

The SDK has one kind of answer. What went wrong is told to the model in it, and ends no run.
"""

from typing import Any

from agents import FunctionTool, Tool
from agents.tool_context import ToolContext

from backburner.app import Session
from backburner.tools.seen import Offer
from backburner.tools.toolset import Toolset


def tools(session: Session, dialect: str | None = None) -> list[Tool]:
    """The tools of this session, with strict schemas."""
    toolset = session.toolset(dialect)
    return [_tool(toolset, offer) for offer in toolset.offers]


def _tool(toolset: Toolset, offer: Offer) -> FunctionTool:
    async def call(context: ToolContext[Any], arguments: str) -> str:  # noqa: ARG001
        return (await toolset.call(offer.name, arguments)).text

    return FunctionTool(
        name=offer.name,
        description=offer.description,
        params_json_schema=offer.schema(strict=True),
        on_invoke_tool=call,
        strict_json_schema=True,
    )
