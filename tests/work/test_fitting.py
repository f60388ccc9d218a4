"""E12: answers that have to fit a schema, and schemas that strangers give."""

import time
from typing import Any

import pytest

from backburner.model.errors import UsageError
from backburner.model.limits import SCHEMA_MAX_BYTES
from backburner.work.fitting import FITTING_MAX_BYTES, check_schema, shown, value_of

POINT = {
    "type": "object",
    "properties": {"x": {"$ref": "#/$defs/number"}, "pattern": {"type": "string"}},
    "required": ["x"],
    "additionalProperties": False,
    "$defs": {"number": {"type": "number", "minimum": 0}},
}


@pytest.mark.parametrize(
    ("schema", "answer", "value"),
    [
        ({"type": "integer"}, "3", 3),
        ({"type": "integer"}, " 3\n", 3),
        ({"type": "boolean"}, "true", True),
        ({"type": "null"}, "null", None),
        ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "[1, 2]", [1, 2]),
        ({"type": "string"}, "42", "42"),
        ({"type": "string"}, "main\n", "main"),
        ({"type": "string", "maxLength": 4}, '"main"', "main"),
        ({"enum": ["yes", "no"]}, "yes", "yes"),
        ({"enum": [1, 2]}, "2", 2),
        ({"type": ["string", "null"]}, "plain words", "plain words"),
        ({"type": ["string", "null"]}, "null", None),
        ({}, "anything at all", "anything at all"),
        ({}, "[1]", [1]),
        (POINT, '{"x": 1.5, "pattern": "("}', {"x": 1.5, "pattern": "("}),
        ({"type": "string", "pattern": "^v[0-9]+$"}, "v12", "v12"),
    ],
)
def test_e12_an_answer_is_json_or_the_text_that_is_wanted(
    schema: dict[str, Any], answer: str, value: Any
) -> None:
    assert value_of(answer, schema) == value


@pytest.mark.parametrize(
    ("schema", "answer", "words"),
    [
        ({"type": "integer"}, "three", "'three' is not of type 'integer'"),
        ({"type": "integer"}, "3.5", "not of type 'integer'"),
        ({"type": "integer"}, "NaN", "not of type 'integer'"),
        ({"enum": ["yes", "no"]}, "maybe", "give one of yes, no"),
        ({"enum": [1, None]}, "3", "give one of 1, null"),
        (POINT, '{"x": -1}', r"less than the minimum of 0 \(at \[\"x\"\]\)"),
        (POINT, '{"y": 1}', "'x' is a required property"),
        (POINT, "{", "'{' is not of type 'object'"),
        ({"properties": {"a": {"type": "integer"}}}, '{"a": "b"}', "not of type 'integer'"),
        ({"type": "array", "uniqueItems": True}, "[1, 1]", "an item is there twice"),
        ({"type": "string", "pattern": "^v[0-9]+$"}, "x", "does not match"),
        ({"type": "string"}, "x" * (FITTING_MAX_BYTES + 1), "at most 64 KiB"),
        ({"type": "integer"}, "[" * 50_000, "not of type 'integer'"),
    ],
)
def test_e12_a_wrong_answer_says_what_is_wrong_and_shows_the_schema(
    schema: dict[str, Any], answer: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        value_of(answer, schema)
    assert len(str(caught.value)) < 1200


def nested(depth: int) -> dict[str, Any]:
    return {"items": nested(depth - 1)} if depth else {"type": "integer"}


def doubling(levels: int) -> dict[str, Any]:
    """Each part names the next one twice."""
    parts: dict[str, Any] = {
        f"p{n}": {"allOf": [{"$ref": f"#/$defs/p{n + 1}"}, {"$ref": f"#/$defs/p{n + 1}"}]}
        for n in range(levels)
    }
    parts[f"p{levels}"] = {"type": "integer"}
    return {"$defs": parts, "$ref": "#/$defs/p0"}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (["not", "an", "object"], "no object"),
        ({"type": "nonsense"}, "cannot be used"),
        ({"enum": "no list"}, "cannot be used"),
        ({"const": object()}, "no JSON"),
        ({"const": float("nan")}, "no JSON"),
        ({"$ref": "http://example.com/schema"}, "names something elsewhere"),
        ({"$ref": "file:///etc/passwd"}, "names something elsewhere"),
        ({"$ref": "#"}, "names something elsewhere"),
        ({"$ref": "#/$defs/none"}, "it has no '#/\\$defs/none'"),
        ({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}, "back to itself"),
        ({"$id": "http://example.com/"}, r"\$id is not supported"),
        ({"patternProperties": {"(a+)+$": {}}}, "patternProperties is not supported"),
        ({"unevaluatedProperties": False}, "not supported"),
        ({"pattern": "(?=a)b"}, "is no pattern"),
        ({"items": {"pattern": "("}}, "is no pattern"),
        ({"description": "x" * SCHEMA_MAX_BYTES}, "longer than 16 KiB"),
        (nested(30), "nested too deeply"),
        (doubling(20), "too large"),
    ],
)
def test_e12_a_hostile_schema_is_refused(schema: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_schema(schema)


def test_e12_a_pattern_takes_no_time() -> None:
    """What Python's own patterns would take years for."""
    began = time.process_time()
    with pytest.raises(UsageError, match="does not match"):
        value_of("a" * 50_000 + "!", {"type": "string", "pattern": "^(a+)+$"})
    assert time.process_time() - began < 10


def test_e12_what_is_data_in_a_schema_is_not_looked_into() -> None:
    schema: dict[str, Any] = {
        "enum": [{"$ref": "http://example.com"}],
        "default": {"$id": 1},
        "examples": [{}],
    }
    assert value_of('{"$ref": "http://example.com"}', schema) == {"$ref": "http://example.com"}


def test_e12_a_schema_is_shown_in_short() -> None:
    assert shown({"enum": ["a", 1, None]}) == "one of a, 1, null"
    assert shown({"type": "integer"}) == 'JSON that fits {"type":"integer"}'
    assert len(shown({"description": "x" * 9000})) <= 500
