"""Content of every kind."""

import base64
import json
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

from tests.mcp.everything.server import server

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


@server.tool(structured_output=False)
def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


@server.tool()
def test_image_content() -> CallToolResult:
    """Give a picture."""
    return CallToolResult(content=[picture()])


@server.tool()
def test_audio_content() -> CallToolResult:
    """Give a sound."""
    return CallToolResult(content=[AudioContent(data=SOUND, mime_type="audio/wav")])


@server.tool()
def test_embedded_resource() -> CallToolResult:
    """Give a resource."""
    text = "This is an embedded resource content."
    return CallToolResult(content=[embedded("test://embedded-resource", "text/plain", text)])


@server.tool()
def test_multiple_content_types() -> CallToolResult:
    """Give a bit of everything."""
    data = json.dumps({"test": "data", "value": 123})
    return CallToolResult(
        content=[
            TextContent(text="Multiple content types test:"),
            picture(),
            embedded("test://mixed-content-resource", "application/json", data),
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


def picture() -> ImageContent:
    return ImageContent(data=PIXEL, mime_type="image/png")


def embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))
