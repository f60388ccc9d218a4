"""A proxy before an existing MCP server: what takes too long goes on in the background (X6).

Everything passes through as it is: tools, resources, prompts, progress, logging, sampling,
elicitation, of whatever protocol version the two sides agree on. Only calls of tools are looked
at: past a budget they are parked, and the task tools are offered beside the server's own.
"""

from backburner.mcp.wrap.program import run

__all__ = ["run"]
