"""Background work over MCP, through real clients of every version on the wire."""
