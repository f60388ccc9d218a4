"""`_meta` of a request or a result: what is said about it beside its content."""

from collections.abc import Mapping
from typing import Any, cast

Json = dict[str, Any]

PROGRESS = "progressToken"


def meta_of(params: Mapping[str, Any] | None) -> Json:
    """A copy; empty where it is missing, or is something else."""
    meta = (params or {}).get("_meta")
    return {**cast("Json", meta)} if isinstance(meta, dict) else {}
