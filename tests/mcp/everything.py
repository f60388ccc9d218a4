"""A plain server with everything that the conformance suite looks for; it knows nothing of us.

`python -m tests.mcp.everything [--http PORT]`. It proves what passes through a wrap: prompts,
resources, completions, content of every kind, progress, logging, sampling, elicitation, requests
for input. Tools that take long are plain ones here: what makes tasks of them stands before it.
"""

import argparse
import asyncio
import base64
import json
import socket
import warnings
from typing import Annotated, Any

from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import (
    INTERNAL_ERROR,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CallToolResult,
    Completion,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import Field

warnings.simplefilter("ignore", MCPDeprecationWarning)  # it serves the earlier versions too

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
    )
).decode()
SOUND = base64.b64encode(
    b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00"
    b"\x02\x00\x10\x00data\x00\x00\x00\x00"
).decode()

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

Ctx = Context[Any, Any]
TASKS = "io.modelcontextprotocol/tasks"

_HINT = CacheHint(60_000, "private")
server = MCPServer(
    "everything",
    version="1",
    log_level="ERROR",
    cache_hints={
        "tools/list": _HINT,
        "prompts/list": _HINT,
        "resources/list": _HINT,
        "resources/templates/list": _HINT,
        "resources/read": _HINT,
        "server/discover": _HINT,
    },
)


async def take(seconds: float) -> None:
    """It is to take this long."""
    await asyncio.sleep(seconds)  # noqa: TID251 - a server that takes its time


# Content


@server.tool(structured_output=False)
def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


@server.tool()
def test_image_content() -> CallToolResult:
    """Give a picture."""
    return CallToolResult(content=[_picture()])


@server.tool()
def test_audio_content() -> CallToolResult:
    """Give a sound."""
    return CallToolResult(content=[AudioContent(data=SOUND, mime_type="audio/wav")])


@server.tool()
def test_embedded_resource() -> CallToolResult:
    """Give a resource."""
    text = "This is an embedded resource content."
    return CallToolResult(content=[_embedded("test://embedded-resource", "text/plain", text)])


@server.tool()
def test_multiple_content_types() -> CallToolResult:
    """Give a bit of everything."""
    data = json.dumps({"test": "data", "value": 123})
    return CallToolResult(
        content=[
            TextContent(text="Multiple content types test:"),
            _picture(),
            _embedded("test://mixed-content-resource", "application/json", data),
        ]
    )


@server.tool()
def test_error_handling() -> str:
    """Fail at once."""
    raise ToolError("This tool intentionally returns an error for testing")


def json_schema_2020_12_tool(name: str = "") -> str:
    """Have a schema with many words."""
    return name


server.add_tool(json_schema_2020_12_tool)
_made = server._tool_manager.get_tool("json_schema_2020_12_tool")  # pyright: ignore[reportPrivateUsage]
assert _made is not None
_made.parameters = SCHEMA


@server.tool(name="test_headers")
def headed(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
    query: str = "",
) -> str:
    """Have an argument that is in the head of a request too."""
    return f"{query} in {region}"


# What comes before the answer


@server.tool()
async def test_tool_with_logging(context: Ctx) -> str:
    """Log three times."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.info(text)  # pyright: ignore[reportDeprecated]
        await take(0.02)
    return "logged"


@server.tool()
def test_logging_tool() -> str:
    """Log nothing, for nobody has asked for it."""
    return "done"


@server.tool()
async def test_tool_with_progress(context: Ctx) -> str:
    """Say three times how far it is."""
    for percent in (0, 50, 100):
        await context.report_progress(percent, 100)
        await take(0.02)
    return "there"


@server.tool()
async def test_sampling(prompt: str, context: Ctx) -> str:
    """Ask the client's model."""
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    answer = await context.session.create_message(  # pyright: ignore[reportDeprecated]
        [message], max_tokens=100, related_request_id=context.request_id
    )
    said = answer.content.text if isinstance(answer.content, TextContent) else "no text"
    return f"LLM response: {said}"


async def elicited(context: Ctx, message: str, properties: dict[str, Any]) -> str:
    """Ask the person in the way of the earlier versions."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
    }
    answer = await context.session.elicit_form(message, schema, context.request_id)
    return f"action={answer.action}, content={json.dumps(answer.content)}"


@server.tool()
async def test_elicitation(message: str, context: Ctx) -> str:
    """Ask the person."""
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    return f"User response: {await elicited(context, message, fields)}"


@server.tool()
async def test_elicitation_sep1034_defaults(context: Ctx) -> str:
    """Ask with something filled in."""
    fields: dict[str, Any] = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    }
    return f"Elicitation completed: {await elicited(context, 'Who?', fields)}"


@server.tool()
async def test_elicitation_sep1330_enums(context: Ctx) -> str:
    """Ask for choices."""
    plain = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
    fields: dict[str, Any] = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return f"Elicitation completed: {await elicited(context, 'Which?', fields)}"


@server.tool()
async def test_reconnection(context: Ctx) -> str:
    """Close the stream in the middle, and answer on the next."""
    await context.close_sse_stream()
    await take(0.1)
    return "reconnected"


# Requests for input


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


# What takes long


@server.tool()
def greet(name: str = "World") -> str:
    """Say hello."""
    return f"Hello, {name}!"


@server.tool()
async def slow_compute(seconds: float = 1, label: str = "") -> str:
    """Take some time."""
    await take(seconds)
    return f"computed {label} in {seconds:g} s"


@server.tool()
async def failing_job(context: Ctx) -> str:
    """Fail after a second, for a client that waits for tasks."""
    can = context.client_capabilities
    if can is None or TASKS not in (can.extensions or {}):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "it takes too long", needed)
    await take(1)
    raise ToolError("it could not be done")


@server.tool()
async def protocol_error_job() -> str:
    """Fail as a JSON-RPC error does, after a second."""
    await take(1)
    raise MCPError(INTERNAL_ERROR, "the machinery broke")


@server.tool()
async def confirm_delete(filename: str, context: Ctx) -> str | InputRequiredResult:
    """Ask before deleting, after a second."""
    answers = given(context, "confirm")
    if answers is None:
        await take(1)
        return wanted({"confirm": form(f"Delete {filename}?", confirm="boolean")})
    return f"deleted {filename}" if value(answers[0], "confirm") else f"kept {filename}"


@server.tool()
async def multi_input(context: Ctx) -> str | InputRequiredResult:
    """Ask two things at once, after a second."""
    answers = given(context, "first", "second")
    if answers is None:
        await take(1)
        first, second = (form(f"Who is the {n}?", name="string") for n in ("first", "second"))
        return wanted({"first": first, "second": second})
    return " and ".join(str(value(each, "name")) for each in answers)


@server.tool()
async def test_tool_with_task(context: Ctx) -> str | InputRequiredResult:
    """Ask for a name, then take some time."""
    answers = given(context, "user_name")
    if answers is None:
        return wanted({"user_name": form("What is your name?", name="string")})
    await take(1)
    return f"Hello, {value(answers[0], 'name')}!"


# Resources, prompts and the rest


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return base64.b64decode(PIXEL)


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text that is watched."""
    return "watched"


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    """Data of an id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - its name
    """A prompt with a resource."""
    resource = _embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [UserMessage(resource), UserMessage("Please process the embedded resource above.")]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A prompt with a picture."""
    return [UserMessage(_picture()), UserMessage("Please analyze the image above.")]


@server.prompt()
async def test_input_required_result_prompt(context: Ctx) -> Any:
    """A prompt that asks."""
    answers = given(context, "user_context")
    if answers is None:
        asked = form("What context should the prompt use?", context="string")
        return wanted({"user_context": asked})
    return f"Use this context: {value(answers[0], 'context')}"


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Completion:
    """Something that begins so."""
    values = [word for word in ("paris", "park", "party") if word.startswith(argument.value)]
    return Completion(values=values, total=len(values), has_more=False)


async def _accepted(_: Any, __: Any) -> EmptyResult:
    return EmptyResult()


for method, params in (
    ("logging/setLevel", SetLevelRequestParams),
    ("resources/subscribe", SubscribeRequestParams),
    ("resources/unsubscribe", UnsubscribeRequestParams),
):
    server._lowlevel_server.add_request_handler(method, params, _accepted)  # pyright: ignore[reportPrivateUsage]


def _picture() -> ImageContent:
    return ImageContent(data=PIXEL, mime_type="image/png")


def _embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    port = parser.parse_args().http
    if port is None:
        server.run()
    else:
        if port == 0:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
        print(json.dumps({"url": f"http://127.0.0.1:{port}/mcp"}), flush=True)
        server.run("streamable-http", port=port)
