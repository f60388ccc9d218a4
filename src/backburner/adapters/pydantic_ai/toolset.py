"""The tools of a session as a toolset of Pydantic AI."""

from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from backburner.app import Session
from backburner.tools.toolset import Toolset

_ANYTHING = SchemaValidator(core_schema.any_schema())
"""Arguments are checked by the tool itself, in words for models."""


def tools(session: Session, dialect: str | None = None) -> "BackgroundToolset":
    """The tools of this session."""
    return BackgroundToolset(session.toolset(dialect))


class BackgroundToolset(AbstractToolset[Any]):
    """All of them."""

    def __init__(self, toolset: Toolset) -> None:
        self.toolset = toolset

    @property
    def id(self) -> str:
        """Its name among the toolsets of an agent."""
        return "background"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """As they go to the model."""
        return {
            offer.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=offer.name,
                    description=offer.description,
                    parameters_json_schema=offer.schema(),
                    sequential=not offer.parallel,
                ),
                max_retries=ctx.max_retries,  # of calls that are no JSON
                args_validator=_ANYTHING,
            )
            for offer in self.toolset.offers
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],  # noqa: ARG002 - the library's signature
        tool: ToolsetTool[Any],  # noqa: ARG002 - the same
    ) -> str:
        """Carry it out; what goes wrong is told to the model."""
        answer = await self.toolset.call(name, tool_args)
        if answer.is_error:
            raise ToolFailed(answer.text)
        return answer.text
