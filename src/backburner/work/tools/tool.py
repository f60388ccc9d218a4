"""A tool: a function that can be called by name, with what a caller has to know of it.

The decorator leaves the function as it is and attaches the tool to it, so that it stays callable,
and a process of its own can find it by its name (`reference`).
"""

import contextlib
import inspect
import math
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypedDict, TypeVar, Unpack, cast, overload

from backburner.model.errors import UsageError
from backburner.model.limits import DEFAULT_TOOL_BUDGET_S
from backburner.model.redaction import VALUE_MAX_CHARS, redact
from backburner.work.tools.arguments import (
    Arguments,
    arguments_of,
    checked_by_schema,
    nothing_checked,
)
from backburner.work.tools.context import Context
from backburner.work.tools.nowhere import nowhere
from backburner.work.tools.threads import blocking, in_thread

Function = Callable[..., Any]
Narration = str | Callable[[Mapping[str, Any]], str]
F = TypeVar("F", bound=Function)

MARK = "__backburner_tool__"
"""The attribute of a function that is a tool."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""What the interfaces of models take as the name of a tool."""


class Options(TypedDict, total=False):
    """What may be said about a tool; the fields of `Tool` explain each."""

    name: str | None
    display_name: str | None
    description: str | None
    budget: float | None
    background: bool
    readonly: bool
    idempotent: bool
    destructive: bool
    policy: str | None
    narration: Narration | None
    record: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tool:
    """What can be called by a model, and everything that is known about it beforehand."""

    name: str
    display_name: str
    """For people."""
    description: str
    """For models."""
    parameters: dict[str, Any]
    """JSON schema of its arguments."""
    budget: float | None = DEFAULT_TOOL_BUDGET_S
    """Seconds until a call of it is parked (D1); None for never."""
    background: bool = False
    """It may be started in the background (`supports_background`)."""
    readonly: bool = False
    """It changes nothing; a call that was cut off may be made again."""
    idempotent: bool = False
    """A second call changes nothing more; a call that was cut off may be made again."""
    destructive: bool = False
    """It may take away what cannot be brought back."""
    policy: str | None = None
    """The right that a caller needs for it; whoever lets callers in decides who has it."""
    narration: Narration | None = None
    """What to show to people while it runs: a text with `{argument}`, or a function of them."""
    record: bool = False
    """Write every call down, also one that ends within its budget."""
    function: Function | None
    """None for a tool that is only declared: nothing here can carry it out."""
    elsewhere: bool = False
    """Another machine carries it out, which has said so in the record."""
    is_async: bool = False
    arguments: Arguments
    ours: bool = False
    """It is part of Backburner: what it did not foresee is an internal error."""
    options: Options
    """As they were given, for another function that stands for the same tool."""

    @property
    def wants_context(self) -> bool:
        """Whether its function takes the context."""
        return self.arguments.context is not None

    @property
    def reference(self) -> str | None:
        """`package.module:function`, where another process can import it from; else None.

        Looked up each time: while a module is being loaded its function is not there yet.
        """
        function = self.function
        module = getattr(function, "__module__", None)
        path = getattr(function, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(path, str) or module == "__main__":
            return None
        loaded = sys.modules.get(module)
        if loaded is None or getattr(loaded, "__spec__", None) is None:
            return None
        found = _attribute(loaded, path)
        if found is not function or getattr(function, MARK, None) is not self:
            return None  # a closure, a lambda, or another tool of the same function
        return f"{module}:{path}"

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for `call`. InvalidArguments, in words for a model."""
        return self.arguments.validate(arguments)

    def call(self, kwargs: dict[str, Any], context: Context | None = None) -> Awaitable[Any]:
        """Call it with what `validate` gave. It raises whatever the function raises."""
        function = self.function
        if function is None:
            raise UsageError(f"the tool {self.name} has nothing that carries it out")
        if (name := self.arguments.context) is not None:
            given = nowhere() if context is None else context
            kwargs = {**kwargs, name: given if self.is_async else blocking(given)}
        return function(**kwargs) if self.is_async else in_thread(function, kwargs)

    def narrate(self, arguments: Mapping[str, Any]) -> str | None:
        """What to show to people while it runs with these arguments; None where nothing was given.

        Secrets are hidden and values cut; it never raises.
        """
        if self.narration is None:
            return None
        shown = redact(arguments)
        try:
            if callable(self.narration):
                return self.narration(shown)
            return self.narration.format_map(
                {name: str(value)[:VALUE_MAX_CHARS] for name, value in shown.items()}
            )
        except Exception:  # noqa: BLE001 - a text for people is not worth a failed call
            return self.display_name

    def document(self) -> dict[str, Any]:
        """All of it that a caller has to know, as JSON."""
        return {
            "name": self.name,
            "display_name": self.display_name,
            "description": self.description,
            "parameters": self.parameters,
            "budget": self.budget,
            "policy": self.policy,
            "hints": {
                "readonly": self.readonly,
                "idempotent": self.idempotent,
                "destructive": self.destructive,
                "supports_background": self.background,
            },
        }


def tool_of(function: Function, **options: Unpack[Options]) -> Tool:
    """The tool that ``function`` is with these options; it is attached to the function."""
    name = options.get("name") or _own_name(function)
    _check(name, options)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"the tool {name} yields its results", remedy="return them all, or report progress"
        )
    arguments = arguments_of(function, name)
    made = Tool(
        **_described(name, options, inspect.getdoc(function) if _has_doc(function) else None),
        parameters=arguments.schema,
        function=function,
        is_async=_is_async(function),
        arguments=arguments,
        ours=(getattr(function, "__module__", None) or "").partition(".")[0] == "backburner",
        options=options,
    )
    with contextlib.suppress(AttributeError):  # a bound method has no place for one
        setattr(function, MARK, made)
    return made


def declared(name: str, schema: Mapping[str, Any], options: Options) -> Tool:
    """A tool that is known here and carried out by nobody here."""
    _check(name, options)
    arguments = nothing_checked(name, schema)
    return Tool(
        **_described(name, options, None),
        parameters=arguments.schema,
        function=None,
        arguments=arguments,
        options=options,
    )


def tool_elsewhere(document: Mapping[str, Any]) -> Tool:
    """The tool of another machine, by what `Tool.document` says of it there."""
    hints = document["hints"]
    arguments = checked_by_schema(document["name"], document["parameters"])
    return Tool(
        name=document["name"],
        display_name=document["display_name"],
        description=document["description"],
        parameters=arguments.schema,
        budget=document["budget"],
        background=hints["supports_background"],
        readonly=hints["readonly"],
        idempotent=hints["idempotent"],
        destructive=hints["destructive"],
        policy=document["policy"],
        function=None,
        elsewhere=True,
        arguments=arguments,
        options={},
    )


def as_tool(item: "Function | Tool") -> Tool:
    """The tool itself, the one attached to a function, or one made of it."""
    if isinstance(item, Tool):
        return item
    attached = getattr(item, MARK, None)
    if not isinstance(attached, Tool):
        return tool_of(item)
    # A method of an object, and what wraps a function, show the mark of what is inside of them.
    return attached if attached.function is item else tool_of(item, **attached.options)


def tool_at(reference: str) -> Tool:
    """The tool at `package.module:function`. UsageError where there is none."""
    module, _, path = reference.partition(":")
    try:
        loaded = import_module(module)
    except Exception as error:  # a module runs when it is loaded, and may raise anything
        text = f"{type(error).__name__}: {error}"
        raise UsageError(f"the module of {reference} cannot be imported: {text}") from error
    attached = getattr(_attribute(loaded, path), MARK, None)
    if not isinstance(attached, Tool):
        raise UsageError(f"there is no tool at {reference}", remedy="decorate it with @tool")
    return attached


def refuse_in_background(tool: Tool) -> None:
    """UsageError where a tool did not opt in, or nothing here carries it out (E2)."""
    if not tool.background:
        raise UsageError(
            f"the tool {tool.name!r} cannot run in the background",
            remedy="call it, or register it with background=True",
        )
    refuse_without_function(tool)


def refuse_without_function(tool: Tool) -> None:
    """UsageError where a tool is only declared."""
    if tool.function is None and not tool.elsewhere:
        raise UsageError(
            f"the tool {tool.name!r} is declared here, and has nothing that carries it out",
            remedy="register the function that does",
        )


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(called: str | None = None, /, **options: Unpack[Options]) -> Callable[[F], F]: ...
def tool(given: Any = None, /, **options: Unpack[Options]) -> Any:
    """Make a function a tool, without a registry: `Registry.add` or `add_module` takes it in."""
    return decorated(given, options, lambda _: None)


def decorated(given: Any, options: Options, keep: Callable[[Tool], object]) -> Any:
    """What a decorator gives that may be used bare, with a name, or with options."""

    def decorate(function: F) -> F:
        keep(tool_of(function, **options))
        return function

    if given is not None and not isinstance(given, str):
        return decorate(given)
    if given is not None:
        options = {**options, "name": given}
    return decorate


def _check(name: str, options: Options) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a tool",
            remedy="letters, digits, _ and -, at most 64; @tool(name=…) gives it one",
        )
    budget = options.get("budget")
    if budget is not None and not (math.isfinite(budget) and budget > 0):
        raise UsageError(
            f"the budget of the tool {name} is {budget!r}",
            remedy="a number of seconds above 0, or None for no budget",
        )
    if options.get("readonly") and options.get("destructive"):
        raise UsageError(f"the tool {name} says that it changes nothing and that it destroys")


def _described(name: str, options: Options, documentation: str | None) -> dict[str, Any]:
    display_name = options.get("display_name") or name.replace("_", " ").strip().capitalize()
    first = (documentation or "").partition("\n\n")[0]
    return cast("dict[str, Any]", options) | {
        "name": name,
        "display_name": display_name,
        "description": options.get("description") or " ".join(first.split()) or display_name,
    }


def _own_name(function: Function) -> str:
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _has_doc(function: Function) -> bool:
    """Not that of `functools.partial`, or of a class that has none of its own."""
    return inspect.isroutine(function) or "__doc__" in vars(type(function))


def _is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - of an object that can be called
    )


def _attribute(found: Any, path: str) -> Any:
    for part in path.split("."):
        found = getattr(found, part, None)
    return found
