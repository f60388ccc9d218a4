"""The tools of an application by name, and calling one of them.

A registry decides nothing about who may call what, and keeps nothing of a call.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Any, Unpack, overload

from backburner.model.errors import UsageError
from backburner.model.outcome import Outcome
from backburner.work.tools.context import Context
from backburner.work.tools.execution import Failure, carry_out
from backburner.work.tools.tool import (
    MARK,
    F,
    Function,
    Options,
    Tool,
    as_tool,
    declared,
    decorated,
    tool_of,
)

__all__ = ["Registry", "Tool"]


class Registry:
    """Tools by their names, in the order in which they came."""

    def __init__(self, tools: Iterable[Tool | Function] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for item in tools:
            self.add(item)

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter([*self._tools.values()])

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def names(self) -> list[str]:
        """Of all tools."""
        return [*self._tools]

    def find(self, name: str) -> Tool | None:
        """The tool of this name, or None."""
        return self._tools.get(name)

    def get(self, name: str) -> Tool:
        """The tool of this name. UsageError that names those that are known."""
        found = self._tools.get(name)
        if found is None:
            raise UsageError(f"there is no tool {_shown(name)}", remedy=self._known(name))
        return found

    def register(self, tool: Tool, *, replace: bool = False) -> Tool:
        """Take in a tool. UsageError where its name is taken, unless it is to ``replace`` that."""
        known = self._tools.get(tool.name)
        if known is not None and known is not tool and not replace:
            raise UsageError(
                f"there is a tool {tool.name!r} already",
                remedy="give it another name, or register it with replace=True",
            )
        self._tools[tool.name] = tool
        return tool

    def add(
        self, item: Tool | Function, *, replace: bool = False, **options: Unpack[Options]
    ) -> Tool:
        """Take in a tool, a function that is one, or any function; options make a new tool of it"""
        if options and isinstance(item, Tool):
            raise UsageError("a tool has its options already", remedy="give the function instead")
        made = tool_of(item, **options) if options and callable(item) else as_tool(item)
        return self.register(made, replace=replace)

    def add_module(self, module: ModuleType, *, replace: bool = False) -> list[Tool]:
        """Take in every function of a module that is a tool, in their order."""
        marked = [value for value in vars(module).values() if hasattr(value, MARK)]
        return [
            self.register(as_tool(value), replace=replace)
            for index, value in enumerate(marked)
            if not any(value is before for before in marked[:index])
        ]

    def declare(
        self, called: str, /, schema: Mapping[str, Any], **options: Unpack[Options]
    ) -> Tool:
        """Make a tool known that nothing here can carry out."""
        return self.register(declared(called, schema, options))

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self, called: str | None = None, /, **options: Unpack[Options]
    ) -> Callable[[F], F]: ...
    def tool(self, given: Any = None, /, **options: Unpack[Options]) -> Any:
        """Decorate a function to take it in: `@registry.tool`, or `@registry.tool(budget=30)`."""
        return decorated(given, options, self.register)

    def remove(self, name: str) -> None:
        """Forget a tool; UsageError where there is none of this name."""
        self.get(name)
        del self._tools[name]

    def copy(self) -> "Registry":
        """The same tools in a registry that can be changed by itself."""
        return Registry(self._tools.values())

    def schemas(self) -> list[dict[str, Any]]:
        """Every tool as JSON: name, texts, parameters, hints."""
        return [tool.document() for tool in self._tools.values()]

    async def execute(
        self, name: str, arguments: Mapping[str, Any], context: Context | None = None
    ) -> Outcome:
        """Call a tool and wait for its end, however long it takes.

        UsageError and InvalidArguments where it cannot be called; ToolError, InternalError or
        ConnectionRequired where it failed, each with the text that may be told.
        """
        tool = self.get(name)
        ended = await carry_out(tool, tool.validate(arguments), context)
        if isinstance(ended, Failure):
            raise ended.error()
        return ended

    def _known(self, name: object) -> str:
        if not self._tools:
            return "none is registered"
        near = get_close_matches(str(name)[:64], self._tools, n=1)
        known = f"known are {', '.join(self._tools)}"
        return f"did you mean {near[0]}? {known}" if near else known


def _shown(name: object) -> str:
    text = repr(name)
    return text if len(text) <= 80 else text[:79] + "…"  # noqa: PLR2004
