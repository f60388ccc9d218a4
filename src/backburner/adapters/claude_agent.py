"""For the Claude Agent SDK: `ClaudeAgentOptions(mcp_servers=claude_agent.servers(session))`.

The tools run in this process. To Claude they are called `mcp__backburner__background_run` and so
on; the name `mcp__backburner` among the `allowed_tools` means all of them.
"""

from typing import Any

from claude_agent_sdk import McpServerConfig, SdkMcpTool, ToolAnnotations, create_sdk_mcp_server

from backburner.app import Session
from backburner.tools.seen import Offer
from backburner.tools.toolset import Toolset

NAME = "backburner"
"""Of the server, and in the names that Claude sees."""


def tools(session: Session, dialect: str | None = None) -> list[SdkMcpTool[Any]]:
    """The tools of this session, for a server of your own."""
    toolset = session.toolset(dialect)
    return [_tool(toolset, offer) for offer in toolset.offers]


def servers(session: Session, dialect: str | None = None) -> dict[str, McpServerConfig]:
    """A server in this process with those tools, under its name."""
    return {NAME: create_sdk_mcp_server(NAME, tools=tools(session, dialect))}


def _tool(toolset: Toolset, offer: Offer) -> SdkMcpTool[Any]:
    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        answer = await toolset.call(offer.name, arguments)
        return {"content": [{"type": "text", "text": answer.text}], "is_error": answer.is_error}

    document = offer.document("mcp")
    return SdkMcpTool(
        name=offer.name,
        description=offer.description,
        input_schema=document["inputSchema"],
        handler=call,
        annotations=ToolAnnotations(**document["annotations"]),
    )
