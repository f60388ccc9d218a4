"""What comes before the answer: logs, progress, questions of the earlier protocol."""

import json
from typing import Any

from mcp_types import (
    SamplingMessage,
    TextContent,
)

from tests.mcp.everything.server import Ctx, server, take


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
