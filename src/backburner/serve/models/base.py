"""What all models share."""

import re
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

Time = Annotated[str, StringConstraints(min_length=20)]
"""RFC 3339, in UTC."""

NAME_MAX_CHARS = 200


_UNSAYABLE = re.compile("[\ud800-\udfff]")
"""Halves of characters: bytes that are no UTF-8, as Python has them, or escapes of JSON."""


class Document(BaseModel):
    """What is answered. A field that the model does not name is an error of ours, not left out.

    A job can write what UTF-8 cannot say: into its result, or as the name of a process. It must not
    spoil the answer that it is in, which may be the list of all tasks.
    """

    model_config = ConfigDict(extra="forbid", serialize_by_alias=True)

    @model_validator(mode="before")
    @classmethod
    def _make_sayable(cls, given: Any) -> Any:
        return sayable(given)


def sayable(value: Any) -> Any:
    """The same, with a mark in the place of what UTF-8 cannot say."""
    if isinstance(value, str):
        return value if value.isascii() else _UNSAYABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {sayable(name): sayable(each) for name, each in items}
    if isinstance(value, list):
        return [sayable(each) for each in cast("list[Any]", value)]
    return value


class Request(BaseModel):
    """What is asked. A field that nobody knows is refused: it would be a wish that is not met."""

    model_config = ConfigDict(extra="forbid", strict=True)


def example(**values: Any) -> ConfigDict:
    """The configuration of a model with an example of it."""
    return ConfigDict(json_schema_extra={"examples": [values]})
