"""Calls of the canonical tools, which every server of ours offers. None outlives the budget.

A wait is no work of its own: one that is longer than the budget becomes, for a client that
declares the extension in that request, the task that is waited for.
"""

from typing import TYPE_CHECKING, Any

from backburner.mcp import extension, results
from backburner.tools.canonical import WAIT_MAX_S

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from backburner.mcp.clients import Client
    from backburner.mcp.tasks import Tasks


class OwnTools:
    """Calls them for a client."""

    def __init__(self, tasks: "Tasks", budget_s: float | None) -> None:
        self._tasks = tasks
        self._budget_s = budget_s

    async def call(
        self,
        context: "ServerRequestContext[Any, Any]",
        client: "Client",
        name: str,
        given: dict[str, Any],
    ) -> dict[str, Any]:
        """What the tool answers, or the task that it would have waited for."""
        waits = _seconds(given.get("wait_seconds")) if name == "background_output" else 0.0
        too_long = self._budget_s is not None and waits > self._budget_s
        if too_long:
            given = {**given, "wait_seconds": self._budget_s}
        elif name == "background_run" and given.get("command") and not given.get("cwd"):
            given = {**given, "cwd": client.folder}
        answer = await client.tools.call(name, given)
        if (
            too_long
            and extension.declared(context)
            and not answer.is_error
            and answer.data.get("finished_at") is None
            and not answer.data.get("signals")  # they would be lost with the answer
        ):
            return await self._tasks.created(client.session, answer.data["id"])
        return results.of_answer(answer)


def _seconds(value: Any) -> float:
    """What a model may have meant; what it is not is told by the tool itself."""
    try:
        return min(float(value), WAIT_MAX_S)
    except (TypeError, ValueError):
        return 0.0
