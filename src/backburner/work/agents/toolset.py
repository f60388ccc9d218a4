"""The tools of a registry as a model calls them through pydantic-ai.

Arguments are checked by the tool itself, whose complaints are written for models; whatever a call
comes to is told to the model, and ends nothing.
"""

import json
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import BinaryContent, ToolReturn
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from backburner.model.errors import BackburnerError
from backburner.model.outcome import Image, Outcome
from backburner.model.redaction import for_log
from backburner.work.tools.context import Context
from backburner.work.tools.execution import Failure, carry_out
from backburner.work.tools.registry import Registry

RESULT_MAX_CHARS = 64_000
"""Of what one call tells a model: about 16,000 tokens."""

_ANYTHING = SchemaValidator(core_schema.any_schema())
_RETRIES = 3


def tools_of(own: Registry | None, of_caller: Registry | None) -> Registry:
    """An agent's own tools; else the default ones, and those of the caller before them."""
    if own is not None:
        return own
    from backburner.work.tools.defaults import default_registry

    tools = default_registry().copy()
    for tool in of_caller or ():
        tools.register(tool, replace=True)
    return tools


class RegistryToolset(AbstractToolset[Any]):
    """What can be carried out of a registry."""

    def __init__(self, registry: Registry, context: Context) -> None:
        self._registry = registry
        self._context = context
        self.images: list[Image] = []
        """What calls have given beside their results."""

    @property
    def id(self) -> str | None:
        """Its name among the toolsets of an agent."""
        return "backburner"

    async def get_tools(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - the library's signature
    ) -> dict[str, ToolsetTool[Any]]:
        """All of them, with the schema of each."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name,
                    description=tool.description,
                    parameters_json_schema=tool.parameters,
                    sequential=not tool.readonly,
                ),
                max_retries=_RETRIES,
                args_validator=_ANYTHING,
            )
            for tool in self._registry
            if tool.function is not None
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],  # noqa: ARG002 - the library's signature
        tool: ToolsetTool[Any],  # noqa: ARG002 - the same
    ) -> Any:
        """Carry it out; what goes wrong is told to the model."""
        if not isinstance(tool_args, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - of a model
            raise ToolFailed("the arguments have to be an object")
        self._context.output("stderr", f"calls {name} {for_log(tool_args)}".rstrip() + "\n")
        try:
            found = self._registry.get(name)
            kwargs = found.validate(tool_args)
        except BackburnerError as error:
            raise ToolFailed(str(error)) from error
        ended = await carry_out(found, kwargs, self._context)
        if isinstance(ended, Failure):
            raise ToolFailed(ended.message)
        if not ended.success:
            raise ToolFailed(_as_text(ended))
        return self._told(ended)

    def _told(self, ended: Outcome) -> Any:
        text = _as_text(ended)
        if not ended.images:
            return text
        self.images += ended.images
        pictures = [BinaryContent(each.data, media_type=each.media_type) for each in ended.images]
        return ToolReturn(text, content=pictures)


def _as_text(ended: Outcome) -> str:
    """What a model reads: the result as it is where it is a text, else as JSON."""
    result = ended.result
    if result is None:
        text = ended.summary or ("done" if ended.success else "the tool says that it failed")
    else:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    if len(text) > RESULT_MAX_CHARS:
        left_out = len(text) - RESULT_MAX_CHARS
        text = f"{text[:RESULT_MAX_CHARS]}\n[{left_out:,} more characters are left out]"
    return text
