"""For LangChain and LangGraph: `create_agent(model, langchain.tools(session))`, or a `ToolNode`.

A message of a tool carries the text for the model, and as its artifact the same as data. These
tools are asynchronous: `ainvoke`, and not `invoke`.
"""

from typing import Any, Literal

from langchain_core.tools import BaseTool, ToolException
from pydantic import PrivateAttr

from backburner.app import Session
from backburner.tools.seen import Offer
from backburner.tools.toolset import Toolset


def tools(session: Session, dialect: str | None = None) -> list[BaseTool]:
    """The tools of this session."""
    toolset = session.toolset(dialect)
    return [BackgroundTool(toolset, offer) for offer in toolset.offers]


class BackgroundTool(BaseTool):
    """One of them."""

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    _toolset: Toolset = PrivateAttr()

    def __init__(self, toolset: Toolset, offer: Offer) -> None:
        super().__init__(
            name=offer.name,
            description=offer.description,
            args_schema=offer.schema(),
            handle_tool_error=True,  # told to the model, with the status "error"
        )
        self._toolset = toolset

    async def _arun(self, /, *args: Any, **kwargs: Any) -> tuple[str, dict[str, Any]]:  # noqa: ARG002
        answer = await self._toolset.call(self.name, kwargs)
        if answer.is_error:
            raise ToolException(answer.text)
        return answer.text, answer.data

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{self.name} is asynchronous: use ainvoke")
