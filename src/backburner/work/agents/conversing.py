"""One conversation of the built-in agent with a model, through pydantic-ai.

Text goes to the log as it comes. What goes wrong with the model is an outcome in our words; the
chain behind it is logged without keys.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterable, Sequence
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    AgentStreamEvent,
    BinaryContent,
    FilePart,
    FunctionToolCallEvent,
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserContent,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from backburner.model.outcome import Image, Outcome
from backburner.model.values import value
from backburner.work.agents.failures import chain_of, explained
from backburner.work.agents.protocol import AgentAnswer, AgentRequest
from backburner.work.agents.toolset import RegistryToolset, tools_of
from backburner.work.tools.context import Context
from backburner.work.tools.registry import Registry

_log = logging.getLogger("backburner.agents")

_SAY_HOW_THEY_ENDED = ("openai", "anthropic")
"""Providers whose streams end with a reason; one without it was cut."""

_RETRIES = 3
"""How often a model may call a tool that is not there, or with arguments that are no JSON."""


@value
class Setup:
    """Which model, and within what limits."""

    model: str
    url: str | None
    instructions: str
    timeout_s: float
    requests_max: int


async def converse(
    setup: Setup, request: AgentRequest, context: Context, registry: Registry | None
) -> AgentAnswer | Outcome:
    """Until the model answers, or something is wrong with it."""
    usage = RunUsage()
    toolset = RegistryToolset(tools_of(registry, request.registry), context)
    try:
        agent = Agent(
            _model(setup),
            instructions=setup.instructions,
            toolsets=[toolset],
            retries=_RETRIES,
        )
        async with agent:
            result = await agent.run(
                _prompt(request),
                usage=usage,
                usage_limits=UsageLimits(request_limit=setup.requests_max),
                model_settings=ModelSettings(timeout=setup.timeout_s),
                event_stream_handler=_Narrator(context),
            )
    except Exception as error:  # noqa: BLE001 - whatever a server says may raise anything in a parser
        _log.warning("%s failed\n%s", setup.model, chain_of(error))
        return Outcome(success=False, summary=explained(error, setup.model), usage=_counted(usage))
    finally:
        await asyncio.sleep(0)  # what was closed lets go of its sockets in the loop's next turn
    if (message := _cut_off(result.response, setup.model)) is not None:
        return Outcome(success=False, summary=message, usage=_counted(usage))
    if result.response.finish_reason == "length":
        context.output("stderr", "the answer was cut at the limit of the model\n")
    media = [*toolset.images, *_pictures(result.new_messages())]
    return AgentAnswer(result.output, media, _counted(usage))


def _cut_off(last: ModelResponse, model: str) -> str | None:
    """Why the last thing that the model said is not its whole answer."""
    if last.finish_reason == "content_filter":
        return f"a content filter of {model} cut the answer off (put the prompt otherwise)"
    ended = last.finish_reason or (last.provider_details or {}).get("finish_reason")
    if ended is None and last.provider_name in _SAY_HOW_THEY_ENDED:
        return f"the answer of {model} broke off (try again)"
    return None


def _model(setup: Setup) -> Model:
    if setup.url is None:
        return infer_model(setup.model)
    key = os.environ.get("BACKBURNER_MODEL_KEY") or os.environ.get("OPENAI_API_KEY") or None
    provider = OpenAICompatibleProvider(
        "openai-compatible",
        base_url=setup.url,
        api_key=key,
        # A stream that just ends would count as a whole answer otherwise.
        profile=OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True),
    )
    return OpenAIChatModel(setup.model.partition(":")[2].strip(), provider=provider)


def _prompt(request: AgentRequest) -> str | Sequence[UserContent]:
    if not request.attachments:
        return request.prompt
    files = [BinaryContent(each.data, media_type=each.media_type) for each in request.attachments]
    return [request.prompt, *files]


def _counted(usage: RunUsage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "requests": usage.requests,
    }


def _pictures(messages: Sequence[ModelMessage]) -> list[Image]:
    """What the model itself has drawn."""
    return [
        Image(part.content.data, part.content.media_type)
        for message in messages
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, FilePart) and part.content.media_type.startswith("image/")
    ]


class _Narrator:
    """Puts what the model says into the log as it comes, and what it does into the status."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ends_line = True

    async def __call__(self, _: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
        """Follow one turn."""
        async for event in events:
            match event:
                case PartStartEvent(part=TextPart(content=text)):
                    self._say(text)
                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                    self._say(text)
                case PartEndEvent(part=TextPart()) if not self._ends_line:
                    self._say("\n")
                case FunctionToolCallEvent():
                    self._context.status(f"calls {event.part.tool_name}")
                case _:
                    pass

    def _say(self, text: str) -> None:
        if text:
            self._context.output("stdout", text)
            self._ends_line = text.endswith("\n")
