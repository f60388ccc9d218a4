"""Questions of a task as input requests of MCP, and the responses as answers.

A form of MCP has fields of plain values only. A question that wants more is asked for its JSON.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from backburner.model.errors import UsageError
from backburner.model.questions import Question
from backburner.work.fitting import shown

_FIELD = "answer"
"""Of a form for a question that has no fields of its own."""

_PLAIN_TYPES = ("string", "number", "integer", "boolean")

DECLINED = "(declined)"
"""What a task is told that takes any text, when its user does not want to answer."""


def key_of(question: Question) -> str:
    """Never used again: the attempt is part of it, because an id is unique within one only."""
    return f"{question.attempt}.{question.id}"


def request_of(question: Question) -> dict[str, Any]:
    """The form that a client shows."""
    return {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": question.text,
            "requestedSchema": _form(question.schema),
        },
    }


def answer_of(question: Question, response: Any) -> str | None:
    """What a response says; None where it answers nothing. UsageError where it is no response."""
    given = _mapping(response)
    action = given.get("action") if given is not None else None
    if given is None or action not in ("accept", "decline", "cancel"):
        raise UsageError("an input response has an action: accept, decline or cancel")
    if action != "accept":
        return DECLINED if question.schema is None else None
    content = _mapping(given.get("content"))
    if content is None:
        raise UsageError("an accepted input response has content, an object")
    if question.schema is not None and _is_form(question.schema):
        return json.dumps(dict(content), ensure_ascii=False)
    if _FIELD not in content:
        raise UsageError(f"the content of the input response lacks {_FIELD!r}")
    value = content[_FIELD]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _mapping(value: Any) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _form(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    if schema is not None and _is_form(schema):
        return dict(schema)
    field: dict[str, Any] = {"type": "string"}
    if schema is not None:
        plain = schema.get("type") in _PLAIN_TYPES or _names(schema)
        field = {"type": "string", **schema} if plain else {**field, "description": shown(schema)}
    return {"type": "object", "properties": {_FIELD: field}, "required": [_FIELD]}


def _is_form(schema: Mapping[str, Any]) -> bool:
    """Whether a client can show it as it is."""
    fields = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(fields, Mapping) or not fields:
        return False
    return all(
        isinstance(field, Mapping) and cast("Mapping[str, Any]", field).get("type") in _PLAIN_TYPES
        for field in cast("Mapping[str, Any]", fields).values()
    )


def _names(schema: Mapping[str, Any]) -> bool:
    """Whether it is a choice of texts."""
    choices = schema.get("enum")
    return isinstance(choices, list) and all(
        isinstance(each, str) for each in cast("list[Any]", choices)
    )
