"""Answers that have to fit a JSON schema (2020-12): what a schema may be, and what an answer is.

A schema comes from a job or a model, and an answer from anyone. So nothing is fetched, patterns
are matched by RE2, and what could take long (schemas that look at others' findings) is refused.
Schemas may name parts of themselves: those are put in place, a bounded number of them.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from backburner.model.errors import UsageError
from backburner.model.limits import SCHEMA_MAX_BYTES
from backburner.model.task import preview
from backburner.work.result import no_number

FITTING_MAX_BYTES = 64 * 1024
"""Of an answer that has to fit a schema: to check it takes its length times the schema's size."""

_PARTS_MAX = 1000
_DEPTH_MAX = 24
_SHOWN_CHARS = 500
_SAID_CHARS = 200

_REFUSED = (
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveRef",
    "patternProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
)

_NOT_SCHEMAS = ("const", "default", "enum", "examples")
"""What is under these is data."""

_BY_NAME = ("dependentSchemas", "properties")
"""Schemas under names that somebody chose."""

_STORES = ("$defs", "definitions")
"""Only for being named."""


def check_schema(schema: Any) -> dict[str, Any]:
    """The schema, whole in itself. UsageError says what about it cannot be."""
    if not isinstance(schema, Mapping):
        raise _refused("it is no object")
    given = cast("Mapping[str, Any]", schema)
    try:
        text = json.dumps(given, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        raise _refused("it is no JSON") from None
    if len(text) > SCHEMA_MAX_BYTES:
        raise _refused(f"it is longer than {SCHEMA_MAX_BYTES // 1024} KiB")
    whole = _Whole(json.loads(text)).schema()
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(whole)  # pyright: ignore[reportUnknownMemberType]
    except SchemaError as error:
        raise _refused(_brief(error)) from None
    except RecursionError:
        raise _refused("it is nested too deeply") from None
    return whole


def value_of(answer: str, schema: Mapping[str, Any]) -> Any:
    """What an answer means: JSON, or the text itself where the schema wants one.

    UsageError says what does not fit, and shows the schema.
    """
    if len(answer) > FITTING_MAX_BYTES:
        raise UsageError(
            f"an answer that has to fit a schema is at most {FITTING_MAX_BYTES // 1024} KiB long",
            remedy="put the rest into a file and name that",
        )
    validator = _validator(check_schema(schema))
    problems: list[str] = []
    for value in _readings(answer, schema):
        problem = _problem(validator, value)
        if problem is None:
            return value
        problems.append(problem)
    raise UsageError(f"the answer does not fit: {problems[0]}", remedy=f"give {shown(schema)}")


class Fitting:
    """Whether values fit one schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """UsageError where it is none that we take."""
        self._validator = _validator(check_schema(schema))

    def problem(self, value: Any) -> str | None:
        """What about a value does not fit; None where it does."""
        return _problem(self._validator, value)


def shown(schema: Mapping[str, Any]) -> str:
    """A schema in a few words for whoever answers: its choices, or itself."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        texts = [
            each if isinstance(each, str) else json.dumps(each)
            for each in cast("list[Any]", choices)
        ]
        return preview("one of " + ", ".join(texts), _SHOWN_CHARS)
    compact = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return preview(f"JSON that fits {compact}", _SHOWN_CHARS)


def _readings(answer: str, schema: Mapping[str, Any]) -> Iterator[Any]:
    """What the text can mean, the likelier first."""
    text = answer.removesuffix("\n")
    if _wants_text(schema):
        yield text
    try:
        yield json.loads(answer, parse_constant=no_number)
    except (ValueError, RecursionError):
        yield text


def _wants_text(schema: Mapping[str, Any]) -> bool:
    choices = schema.get("enum")
    if isinstance(choices, list):
        return all(isinstance(each, str) for each in cast("list[Any]", choices))
    return schema.get("type") == "string"


def _problem(validator: Any, value: Any) -> str | None:
    from jsonschema.exceptions import best_match  # pyright: ignore[reportUnknownVariableType]

    try:
        error = cast("Any", best_match(validator.iter_errors(value)))
    except (RecursionError, ArithmeticError):
        return "it is nested too deeply, or has numbers that are too large"
    return None if error is None else _brief(error)


def _brief(error: Any) -> str:
    where = "".join(f"[{json.dumps(part)}]" for part in error.absolute_path)
    said = " ".join(str(error.message).split())
    if len(said) > _SAID_CHARS:  # what was given, and at its end what is wrong with it
        said = f"{said[: _SAID_CHARS // 2]} … {said[-_SAID_CHARS // 2 :]}"
    return f"{said} (at {where})" if where else said


def _validator(schema: dict[str, Any]) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]

    rules = {"pattern": _pattern, "uniqueItems": _unique}
    return cast("Any", extend(Draft202012Validator, rules))(schema)


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:  # noqa: ARG001
    from jsonschema.exceptions import ValidationError

    from backburner.work.log.pattern import MOST_MEMORY, compile_pattern

    if isinstance(value, str) and not compile_pattern(pattern, most_memory=MOST_MEMORY)(value):
        yield ValidationError(f"{preview(value)!r} does not match {pattern!r}")


def _unique(validator: Any, wanted: bool, value: Any, schema: Any) -> Iterator[Any]:  # noqa: ARG001
    from jsonschema.exceptions import ValidationError

    if wanted and isinstance(value, list):
        items = cast("list[Any]", value)
        if len({json.dumps(each, sort_keys=True) for each in items}) < len(items):
            yield ValidationError("an item is there twice")


class _Whole:
    """Puts the parts that a schema names in their places."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._parts = 0

    def schema(self) -> dict[str, Any]:
        """The whole, which names nothing any more."""
        return self._placed(self._root, 0, ())

    def _placed(self, part: Any, depth: int, within: tuple[str, ...]) -> Any:
        self._parts += 1
        if depth > _DEPTH_MAX or self._parts > _PARTS_MAX:
            raise _refused("it is too large, or nested too deeply")
        if isinstance(part, list):
            return [self._placed(each, depth + 1, within) for each in cast("list[Any]", part)]
        if not isinstance(part, dict):
            return part
        placed: dict[str, Any] = {}
        also: list[Any] = []
        for key, inner in cast("dict[str, Any]", part).items():
            _check(key, inner)
            if key == "$ref":
                also.append(self._named(inner, depth, within))
            elif key in _NOT_SCHEMAS:
                placed[key] = inner
            elif key in _BY_NAME and isinstance(inner, dict):
                placed[key] = {
                    name: self._placed(each, depth + 1, within)
                    for name, each in cast("dict[str, Any]", inner).items()
                }
            elif key not in _STORES:
                placed[key] = self._placed(inner, depth + 1, within)
        if also:
            placed["allOf"] = [*placed.get("allOf", []), *also]
        return placed

    def _named(self, reference: Any, depth: int, within: tuple[str, ...]) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise _refused("a $ref in it names something elsewhere")
        if reference in within:
            raise _refused("a $ref in it leads back to itself")
        found: Any = self._root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found:
                raise _refused(f"it has no {preview(reference)!r}")
            found = cast("dict[str, Any]", found)[name]
        return self._placed(found, depth + 1, (*within, reference))


def _check(key: str, inner: Any) -> None:
    if key in _REFUSED:
        raise _refused(f"{key} is not supported")
    if key == "pattern" and isinstance(inner, str):
        from backburner.work.log.pattern import check_pattern

        check_pattern(inner)


def _refused(reason: str) -> UsageError:
    return UsageError(
        f"the schema of the question cannot be used: {reason}",
        remedy="use a plain JSON schema, such as one with type, enum, properties",
    )
