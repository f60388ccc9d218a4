"""Resources, prompts and the rest."""

import base64
import json
from typing import Any

from mcp.server.mcpserver.prompts.base import UserMessage
from mcp_types import (
    Completion,
    EmptyResult,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

from tests.mcp.everything.content import PIXEL, embedded, picture
from tests.mcp.everything.inputs import form, given, value, wanted
from tests.mcp.everything.server import Ctx, server


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
    resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [UserMessage(resource), UserMessage("Please process the embedded resource above.")]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A prompt with a picture."""
    return [UserMessage(picture()), UserMessage("Please analyze the image above.")]


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
