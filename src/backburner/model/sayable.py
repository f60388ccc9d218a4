"""What UTF-8 cannot say: halves of characters, from bytes that are none or from escapes of JSON.

A job can write them into its result, and they must not spoil the answer that they are in. Pure.
"""

import re
from typing import Any, cast

_UNSAYABLE = re.compile("[\ud800-\udfff]")


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
