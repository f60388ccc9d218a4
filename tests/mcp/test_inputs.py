"""X6: questions as forms of MCP, and what comes back."""

from typing import Any

import pytest

from backburner.mcp.inputs import answer_of, key_of, request_of
from backburner.model.errors import UsageError
from backburner.model.questions import Question
from backburner.work.fitting import value_of

FLAT = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
NESTED = {"type": "object", "properties": {"where": {"type": "object"}}}


def asked(schema: dict[str, Any] | None, attempt: int = 1) -> Question:
    return Question("bg_x", "q1", "Well?", 0, attempt=attempt, schema=schema)


def form(schema: dict[str, Any] | None) -> dict[str, Any]:
    request = request_of(asked(schema))
    assert request["method"] == "elicitation/create"
    assert request["params"]["message"] == "Well?"
    return request["params"]["requestedSchema"]


def test_x6_a_key_is_never_used_again_also_in_another_attempt() -> None:
    assert key_of(asked(None, 1)) != key_of(asked(None, 2))


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        (None, {"type": "string"}),
        ({"type": "integer"}, {"type": "integer"}),
        ({"enum": ["yes", "no"]}, {"type": "string", "enum": ["yes", "no"]}),
    ],
)
def test_x6_a_plain_question_has_one_field(schema: Any, field: dict[str, Any]) -> None:
    assert form(schema) == {
        "type": "object",
        "properties": {"answer": field},
        "required": ["answer"],
    }


def test_x6_a_flat_object_is_a_form_as_it_is() -> None:
    assert form(FLAT) == FLAT


@pytest.mark.parametrize(
    "schema", [NESTED, {"type": "array"}, {"enum": [1, 2]}, {"type": "object"}, {}]
)
def test_x6_what_no_form_can_show_is_asked_for_as_json(schema: dict[str, Any]) -> None:
    field = form(schema)["properties"]["answer"]
    assert field["type"] == "string"
    assert field["description"]


@pytest.mark.parametrize(
    ("schema", "content", "meant"),
    [
        ({"type": "integer"}, {"answer": 3}, 3),
        ({"enum": ["yes", "no"]}, {"answer": "no"}, "no"),
        (FLAT, {"name": "Ada", "age": 36}, {"name": "Ada", "age": 36}),
        (NESTED, {"answer": '{"where": {"x": 1}}'}, {"where": {"x": 1}}),
        ({"type": "string"}, {"answer": "12"}, "12"),
    ],
)
def test_x6_an_answer_means_what_was_filled_in(
    schema: dict[str, Any], content: dict[str, Any], meant: Any
) -> None:
    answer = answer_of(asked(schema), {"action": "accept", "content": content})
    assert answer is not None
    assert value_of(answer, schema) == meant


def test_x6_who_declines_answers_a_question_for_any_text_only() -> None:
    assert answer_of(asked(None), {"action": "decline"}) == "(declined)"
    assert answer_of(asked(None), {"action": "cancel"}) == "(declined)"
    assert answer_of(asked(FLAT), {"action": "decline"}) is None


@pytest.mark.parametrize(
    "response",
    [
        None, 7, [], "accept", {}, {"action": ["accept"]}, {"action": "accept"},
        {"action": "accept", "content": {"other": 1}},
    ],
)  # fmt: skip
def test_x6_what_is_no_response_is_refused(response: Any) -> None:
    with pytest.raises(UsageError):
        answer_of(asked(None), response)
