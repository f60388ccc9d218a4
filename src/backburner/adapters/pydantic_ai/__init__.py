"""For Pydantic AI: `Agent(capabilities=[pydantic_ai.Background(session)])`, which are the tools,
and being told; or `Agent(toolsets=[pydantic_ai.tools(session)])`, the tools alone.
"""

from backburner.adapters.pydantic_ai.background import Background
from backburner.adapters.pydantic_ai.toolset import tools

__all__ = ["Background", "tools"]
