"""What a parked call is answered that is no end: its client is not waiting for it any more.

Where it asks for input, the session is asked; before, within the budget, the client answers by
calling again, as the protocol has it. Where the server has made a task of its own of it, that is
followed to its end; before, the client gets it as it is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import ErrorData

from backburner.mcp.wrap.meta import Json
from backburner.model.errors import ToolError
from backburner.work.tools.context import Context

Ask = Callable[[str, Json], Awaitable[Json]]
"""A method of the server, with these parameters."""

_QUESTIONS_MOST = 20
_POLL_S = (0.2, 60.0)
"""The least and the most between two looks at a task of the server's own."""
_INTERNAL = -32603


def asks(answer: Json) -> bool:
    """Whether this is no end yet, but a request for input."""
    return answer.get("resultType") == "input_required"


async def ended(answer: Json, meta: Json, ask: Ask) -> Json | None:
    """What a task of the server's own came to; None where the answer is no task.

    A stop of the parked call cancels it there.
    """
    if answer.get("resultType") != "task":
        return None
    params: Json = {"taskId": answer.get("taskId"), "_meta": meta}
    try:
        while answer.get("status") in ("working", "submitted"):
            await asyncio.sleep(_pause(answer.get("pollIntervalMs")))
            answer = await ask("tasks/get", params)
    except asyncio.CancelledError:
        await ask("tasks/cancel", params)
        raise
    if answer.get("status") == "completed" and isinstance(answer.get("result"), dict):
        return cast("Json", answer["result"])
    error: Any = answer.get("error")
    if answer.get("status") == "failed" and isinstance(error, dict):
        raise MCPError.from_error_data(_error(cast("Json", error)))
    raise ToolError(f"the wrapped server's own task is {answer.get('status')!s:.40}")


async def answered(context: Context, answer: Json) -> Json:
    """What the next call has to bring: an answer to each request, and the server's own state."""
    requests: Any = answer.get("inputRequests") or {}
    if not isinstance(requests, dict) or len(cast("Json", requests)) > _QUESTIONS_MOST:
        raise ToolError("the wrapped server asks for input in a way that is not understood")
    known = cast("Json", requests)
    # At once: whoever answers may take them in any order.
    async with asyncio.TaskGroup() as group:
        asking = {key: group.create_task(_response(context, known[key])) for key in known}
    responses = {key: task.result() for key, task in asking.items()}
    state = answer.get("requestState")
    return {"inputResponses": responses} | ({} if state is None else {"requestState": state})


async def _response(context: Context, request: Any) -> Json:
    """A form is a question; a client's model, its roots and pages to open are the client's."""
    asked = cast("Json", request) if isinstance(request, dict) else {}
    params: Any = asked.get("params")
    form = cast("Json", params) if isinstance(params, dict) else {}
    schema: Any = form.get("requestedSchema")
    if asked.get("method") != "elicitation/create" or not isinstance(schema, dict):
        raise ToolError(
            f"the wrapped server needs {asked.get('method', 'something')!s:.60} of its client,"
            " which does not wait for this call any more",
            remedy="call it again with a longer budget",
        )
    content = await context.ask(str(form.get("message")), schema=cast("Json", schema))
    return {"action": "accept", "content": content}


def _pause(said: Any) -> float:
    seconds = said / 1_000 if isinstance(said, int | float) else 1.0
    return min(max(seconds, _POLL_S[0]), _POLL_S[1])


def _error(given: Json) -> ErrorData:
    code = given.get("code")
    return ErrorData(
        code=code if isinstance(code, int) else _INTERNAL,
        message=str(given.get("message")),
        data=given.get("data"),
    )
