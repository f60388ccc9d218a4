"""What a tool or an agent gives back, and the pictures that go with it."""

from collections.abc import Mapping, Sequence
from typing import Any

from backburner.model.values import value


@value
class Image:
    """A picture that travels with a result."""

    data: bytes
    media_type: str = "image/png"
    name: str | None = None


@value
class Outcome:
    """How a call ended by itself. A tool may return one, or just its result.

    ``success=False`` is a failure whose result is kept. ``raw_output`` travels beside the result
    and never becomes part of it.
    """

    success: bool = True
    summary: str | None = None
    result: Any = None
    raw_output: Any = None
    images: Sequence[Image] = ()
    usage: Mapping[str, int] | None = None
    """What a model has used for it, where one took part."""
