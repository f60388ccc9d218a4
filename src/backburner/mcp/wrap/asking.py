"""What a parked call asks for: its client is not waiting any more, so the session is asked.

Before, within the budget, the client answers by calling again, as the protocol has it.
"""

from typing import Any, cast

from backburner.mcp.wrap.meta import Json
from backburner.model.errors import ToolError
from backburner.work.tools.context import Context

_QUESTIONS_MOST = 20


def asks(answer: Json) -> bool:
    """Whether this is no end yet, but a request for input."""
    return answer.get("resultType") == "input_required"


async def answered(context: Context, answer: Json) -> Json:
    """What the next call has to bring: an answer to each request, and the server's own state."""
    requests: Any = answer.get("inputRequests") or {}
    if not isinstance(requests, dict) or len(cast("Json", requests)) > _QUESTIONS_MOST:
        raise ToolError("the wrapped server asks for input in a way that is not understood")
    responses = {
        key: await _response(context, request) for key, request in cast("Json", requests).items()
    }
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
