"""What all models share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

Time = Annotated[str, StringConstraints(min_length=20)]
"""RFC 3339, in UTC."""

NAME_MAX_CHARS = 200


class Document(BaseModel):
    """What is answered. A field that the model does not name is an error of ours, not left out."""

    model_config = ConfigDict(extra="forbid", serialize_by_alias=True)


class Request(BaseModel):
    """What is asked. A field that nobody knows is refused: it would be a wish that is not met."""

    model_config = ConfigDict(extra="forbid", strict=True)


def example(**values: Any) -> ConfigDict:
    """The configuration of a model with an example of it."""
    return ConfigDict(json_schema_extra={"examples": [values]})
