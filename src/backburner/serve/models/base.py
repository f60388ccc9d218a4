"""What all models share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from backburner.model.sayable import sayable

Time = Annotated[str, StringConstraints(min_length=20)]
"""RFC 3339, in UTC."""

NAME_MAX_CHARS = 200


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


class Request(BaseModel):
    """What is asked. A field that nobody knows is refused: it would be a wish that is not met."""

    model_config = ConfigDict(extra="forbid", strict=True)


def example(**values: Any) -> ConfigDict:
    """The configuration of a model with an example of it."""
    return ConfigDict(json_schema_extra={"examples": [values]})
