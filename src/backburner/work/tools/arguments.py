"""The arguments of a tool: their JSON schema, made from the signature, and checking against it.

Everything is built when the tool is registered; a check is one call into pydantic. What it says
about wrong arguments is for a model: which one, what is wrong with it, what was given.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, get_args, get_type_hints

from backburner.model.errors import InvalidArguments, UsageError
from backburner.model.redaction import is_secret, redact, redact_text, secrets_in, without
from backburner.work.tools.context import BlockingContext, Context

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_LINES_MAX = 20
_SHOWN_MAX = 120
_NAME_MAX = 64

Validator = Callable[[Any], dict[str, Any]]


class _DoesNotFit(ValueError):
    """Arguments that a schema refuses, and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """What a function takes."""

    tool: str
    schema: dict[str, Any]
    """JSON schema of the object of arguments."""
    context: str | None
    """The parameter that gets the context."""
    validator: Validator

    def validate(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for the function. InvalidArguments, in words for a model."""
        try:
            return self.validator(given)
        except Exception as error:  # noqa: BLE001 - whatever a validator raises
            raise InvalidArguments(self._explanation(given, error)) from None

    def _explanation(self, given: Any, error: Exception) -> str:
        try:
            return self._explained(given, error)
        except RecursionError:
            return f"{self.tool}: the arguments are nested too deeply"

    def _explained(self, given: Any, error: Exception) -> str:
        from pydantic_core import ValidationError

        if not isinstance(given, Mapping):
            return f"{self.tool}: the arguments have to be an object, not {_kind(given)}"
        hidden = secrets_in(given)  # pyright: ignore[reportUnknownArgumentType]
        if not isinstance(error, ValidationError):  # of a validator that a type brings along
            text = redact_text(without(str(error), hidden))
            if isinstance(error, _DoesNotFit):
                return f"{self.tool}: wrong arguments\n- {text}"
            return f"{self.tool}: the arguments cannot be checked: {type(error).__name__}: {text}"
        details = error.errors(include_url=False, include_context=False)
        unknown = [_name(each) for each in details if each["type"] == "extra_forbidden"]
        lines = [_line(each) for each in details if each["type"] != "extra_forbidden"]
        if unknown:
            lines.append(self._unknown(unknown))
        if len(lines) > _LINES_MAX:
            lines[_LINES_MAX:] = [f"and {len(lines) - _LINES_MAX} more"]
        text = "\n".join(f"- {line}" for line in lines)
        return without(f"{self.tool}: wrong arguments\n{text}", hidden)

    def _unknown(self, names: list[str]) -> str:
        known = list(self.schema.get("properties", {}))
        shown = ", ".join(names[:_LINES_MAX]) + (", …" if len(names) > _LINES_MAX else "")
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        return f"{shown}: no such argument{'s' if len(names) > 1 else ''}; {takes}"


def arguments_of(function: Callable[..., Any], tool: str) -> Arguments:
    """What ``function`` takes. UsageError where no schema can be made of its signature."""
    hints = _hints(function, tool)
    context: str | None = None
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    open_ended = False
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if _is_context(name, hint, annotated=name in hints):
            context = name
        elif parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
            raise UsageError(
                f"the tool {tool} has the parameter {star}{name}, which cannot be given by name",
                remedy="arguments of a tool have names: make it an ordinary parameter",
            )
        else:
            fields[name] = _field(hint, parameter.default)
            defaults[name] = parameter.default
    return _built(tool, fields, defaults, context, open_ended=open_ended)


def nothing_checked(tool: str, schema: Mapping[str, Any]) -> Arguments:
    """Of a tool that is carried out elsewhere, which checks them itself."""

    def copied(given: Any) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            raise ValueError  # noqa: TRY004 - as of a validator
        return {**given}

    return Arguments(tool, {**schema}, None, copied)


def checked_by_schema(tool: str, schema: Mapping[str, Any]) -> Arguments:
    """Of a tool that another machine carries out: as far as its schema goes. It checks them too."""
    from backburner.work.fitting import Fitting  # not for those who have their tools here

    unchecked = nothing_checked(tool, schema)
    try:
        fitting = Fitting(schema)
    except UsageError:  # one that takes more than we do
        return unchecked

    def checked(given: Any) -> dict[str, Any]:
        copied = unchecked.validator(given)
        if (problem := fitting.problem(copied)) is not None:
            raise _DoesNotFit(problem)
        return copied

    return Arguments(tool, unchecked.schema, None, checked)


def _hints(function: Callable[..., Any], tool: str) -> dict[str, Any]:
    source: Any = function
    while hasattr(source, "func"):  # functools.partial
        source = source.func
    if not inspect.isroutine(source):
        source = type(source).__call__
    try:
        return get_type_hints(source, include_extras=True)
    except Exception as error:
        raise UsageError(
            f"the annotations of the tool {tool} cannot be read: {error}",
            remedy="types have to be importable in the module of the function",
        ) from error


def _is_context(name: str, hint: Any, *, annotated: bool) -> bool:
    """By its type, or by its name where it has none: an argument may be called so too."""
    if any(each in (hint, *get_args(hint)) for each in (Context, BlockingContext)):
        return True
    return name == "context" and (not annotated or hint is Any)


def _field(hint: Any, default: Any) -> Any:
    from pydantic.fields import FieldInfo

    if isinstance(default, FieldInfo):  # `n: int = Field(3, description=…)`
        return Annotated[hint, default]
    # Left out, the function's own default holds, whatever it is.
    return hint if default is inspect.Parameter.empty else NotRequired[hint]


def _built(
    tool: str,
    fields: dict[str, Any],
    defaults: dict[str, Any],
    context: str | None,
    *,
    open_ended: bool,
) -> Arguments:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError
    from typing_extensions import TypedDict

    from backburner.work.tools.plain_schema import PlainSchema, with_defaults

    shape: Any = TypedDict("Arguments", fields)  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
    shape.__pydantic_config__ = ConfigDict(extra="allow" if open_ended else "forbid")
    try:
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
        schema = adapter.json_schema(schema_generator=PlainSchema)
    except (PydanticUserError, TypeError) as error:
        raise UsageError(
            f"no schema can be made of the parameters of the tool {tool}: {error}",
            remedy="use types that pydantic knows, and that have a spelling in JSON",
        ) from error
    return Arguments(
        tool, with_defaults(schema, defaults), context, adapter.validator.validate_python
    )


def _name(detail: "ErrorDetails") -> str:
    """`filters[0].name`, cut: the other side may give anything as a name."""
    text = ""
    for part in detail["loc"]:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be told on
    return (text if len(text) <= _NAME_MAX else text[: _NAME_MAX - 1] + "…") or "the arguments"


def _line(detail: "ErrorDetails") -> str:
    if detail["type"] == "missing":
        return f"{_name(detail)}: it is missing"
    what = redact_text(detail["msg"].removeprefix("Value error, "))
    return f"{_name(detail)}: {what[:1].lower()}{what[1:]}; given: {_shown(detail)}"


def _shown(detail: "ErrorDetails") -> str:
    from pydantic_core import to_json

    if any(isinstance(part, str) and is_secret(part) for part in detail["loc"]):
        return "[redacted]"
    try:
        text = redact_text(to_json(redact(detail["input"]), fallback=repr).decode())
    except ValueError:
        text = _kind(detail["input"])
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"


def _kind(value: object) -> str:
    """As JSON calls it."""
    names = {"NoneType": "null", "list": "a list", "tuple": "a list", "str": "a text"}
    name = type(value).__name__
    return names.get(name, f"a value of type {name}")
