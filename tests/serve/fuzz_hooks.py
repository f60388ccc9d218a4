"""What is fuzzed must not run: commands that were made up are replaced by one that does nothing."""

from typing import Any, cast

import schemathesis


@schemathesis.hook  # pyright: ignore[reportUnknownMemberType]  # typed in part only
def map_body(context: Any, body: Any) -> Any:
    """The kinds that start processes start harmless ones, and few of them."""
    if isinstance(body, dict):
        made_up = cast("dict[str, Any]", body)
        for name in ("command", "call", "ready_file", "ready_http", "cwd", "work"):
            if isinstance(made_up.get(name), str):
                made_up[name] = {"command": "true", "work": "true"}.get(name, "none")
        if made_up.get("kind") == "agent":
            made_up["agent"] = "nobody"
        return made_up
    return body
