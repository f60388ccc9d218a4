"""JSON schemas that say what a model needs and no more: without the titles that repeat names.

Loads pydantic: imported when the first tool is registered.
"""

import inspect
from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_jsonable_python


class PlainSchema(GenerateJsonSchema):
    """Every title costs tokens in every request, and says what the name says."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Never."""
        return False


def with_defaults(schema: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the defaults of the signature that can be said in JSON."""
    schema.pop("title", None)
    properties = schema.setdefault("properties", {})
    for name, default in defaults.items():
        if default is inspect.Parameter.empty or isinstance(default, FieldInfo):
            continue
        try:
            properties[name]["default"] = to_jsonable_python(default, inf_nan_mode="strings")
        except (PydanticSerializationError, ValueError):
            continue
    for definition in schema.get("$defs", {}).values():
        definition.pop("title", None)
    return schema
