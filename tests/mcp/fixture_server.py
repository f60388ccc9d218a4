"""A server of the fixture tools: `python -m tests.mcp.fixture_server [--http PORT] [--budget S]`.

It does what our own server does for no tool: it asks before a call (`test_tool_with_task`), and
wants a client that can sample (`test_missing_capability`).
"""

import argparse
import asyncio
import json
from dataclasses import replace
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY

from backburner import Backburner
from backburner.mcp import transports
from backburner.mcp.server import opened
from tests.mcp.fixture_tools import ONLY_AS_TASKS, REGISTRY

_ASKED = {
    "user_name": {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "What is your name?",
            "requestedSchema": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        },
    }
}


async def ask_first(ctx: Any, call_next: Any) -> Any:
    """What comes before the calls of two tools."""
    params = dict(ctx.params or {})
    called = params.get("name") if ctx.method == "tools/call" else None
    if called == "test_missing_capability":
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "the client has to sample", needed)
    if called != "test_tool_with_task":
        return await call_next(ctx)
    responses = params.pop("inputResponses", None)
    if not responses:
        return {"resultType": "input_required", "inputRequests": _ASKED}
    params["arguments"] = {"user_name": responses["user_name"]["content"]["name"]}
    return await call_next(replace(ctx, params=params))


async def main(port: int | None, budget_s: float, session: str | None) -> None:
    """Serve until the end."""
    async with (
        Backburner.open() as bb,
        opened(bb, session, REGISTRY, budget_s=budget_s, only_as_tasks=ONLY_AS_TASKS) as server,
    ):
        server.middleware.append(ask_first)
        if port is None:
            await transports.over_stdio(server)
        else:
            await transports.over_http(
                server,
                transports.listen(port),
                lambda address: print(json.dumps({"url": address}), flush=True),
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    parser.add_argument("--budget", type=float, default=0.3)
    parser.add_argument("--session")
    given = parser.parse_args()
    asyncio.run(main(given.http, given.budget, given.session))
