"""Requests for input."""

from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    InputRequiredResult,
)

from tests.mcp.everything.server import Ctx, server, take


def form(message: str, **fields: str) -> dict[str, Any]:
    """A question to the person."""
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": [*fields]}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def sampled(text: str) -> dict[str, Any]:
    """A question to the client's model."""
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {
        "method": "sampling/createMessage",
        "params": {"messages": [message], "maxTokens": 100},
    }


ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}


def wanted(requests: dict[str, Any], state: str | None = None) -> InputRequiredResult:
    """What is asked for, before there is an answer."""
    return InputRequiredResult.model_validate({"inputRequests": requests, "requestState": state})


def given(context: Ctx, *keys: str) -> list[Any] | None:
    """The responses to these, if all are there."""
    responses = context.input_responses or {}
    found = [responses.get(key) for key in keys]
    return None if None in found else found


def value(response: Any, name: str) -> Any:
    """A field of a form that was filled in; None where it was not."""
    content: Any = getattr(response, "content", None)
    return content.get(name) if content else None


@server.tool()
async def test_input_required_result_elicitation(context: Ctx) -> str | InputRequiredResult:
    """Ask for a name."""
    answers = given(context, "user_name")
    name = value(answers[0], "name") if answers else None
    if not isinstance(name, str):
        return wanted({"user_name": form("What is your name?", name="string")})
    return f"Hello, {name}!"


@server.tool()
async def test_streaming_elicitation(context: Ctx) -> str | InputRequiredResult:
    """Ask after a while."""
    await take(0.02)
    return await test_input_required_result_elicitation(context)


@server.tool()
async def test_input_required_result_sampling(context: Ctx) -> str | InputRequiredResult:
    """Ask the client's model."""
    answers = given(context, "capital_question")
    if answers is None:
        return wanted({"capital_question": sampled("What is the capital of France?")})
    return str(answers[0].content.text)


@server.tool()
async def test_input_required_result_list_roots(context: Ctx) -> str | InputRequiredResult:
    """Ask for the client's roots."""
    answers = given(context, "client_roots")
    if answers is None:
        return wanted({"client_roots": ROOTS})
    return ", ".join(str(root.uri) for root in answers[0].roots)


@server.tool()
async def test_input_required_result_request_state(context: Ctx) -> str | InputRequiredResult:
    """Have a state that comes back."""
    if given(context, "confirm") is None or context.request_state != "state":
        return wanted({"confirm": form("Please confirm", ok="boolean")}, "state")
    return "state-ok"


@server.tool()
async def test_input_required_result_tampered_state(context: Ctx) -> str | InputRequiredResult:
    """Have a state that nobody may change; the package seals it."""
    return await test_input_required_result_request_state(context)


@server.tool()
async def test_input_required_result_multiple_inputs(context: Ctx) -> str | InputRequiredResult:
    """Ask for three things at once."""
    if given(context, "user_name", "greeting", "client_roots") is None:
        requests = {
            "user_name": form("What is your name?", name="string"),
            "greeting": sampled("Generate a greeting"),
            "client_roots": ROOTS,
        }
        return wanted(requests, "state")
    return "all three"


@server.tool()
async def test_input_required_result_multi_round(context: Ctx) -> str | InputRequiredResult:
    """Ask twice."""
    if context.request_state == "one" and given(context, "step1"):
        asked = form("Step 2: What is your favorite color?", color="string")
        return wanted({"step2": asked}, "two")
    if context.request_state == "two" and given(context, "step2"):
        return "both steps"
    return wanted({"step1": form("Step 1: What is your name?", name="string")}, "one")


@server.tool()
async def test_input_required_result_capabilities(context: Ctx) -> str | InputRequiredResult:
    """Ask for what the client can give, and for nothing else."""
    can = context.client_capabilities
    requests: dict[str, Any] = {}
    if can is not None and can.elicitation is not None:
        requests["name"] = form("What is your name?", name="string")
    if can is not None and can.sampling is not None:
        requests["greeting"] = sampled("Generate a greeting")
    return wanted(requests) if requests and not context.input_responses else "nothing to ask"


@server.tool()
async def test_missing_capability(context: Ctx) -> str:
    """Want a client that can sample."""
    can = context.client_capabilities
    if can is None or can.sampling is None:
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "the client has to sample", needed)
    return "it can"


@server.tool()
async def test_trigger_tool_change(context: Ctx) -> str:
    """Tell whoever listens that the tools have changed."""
    await context.notify_tools_changed()
    return "told"


@server.tool()
async def test_trigger_prompt_change(context: Ctx) -> str:
    """Tell whoever listens that the prompts have changed."""
    await context.notify_prompts_changed()
    return "told"
