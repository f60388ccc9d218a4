"""The tools that a client is offered: those of the wrapped server, and ours beside them.

The server's names are its own: where one of ours is taken, ours is called something else.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp_types import METHOD_NOT_FOUND

from backburner.mcp.wrap.meta import Json

Ask = Callable[[Json], Awaitable[Json]]
"""`tools/list` of the server, with these parameters."""

_PAGES_MOST = 200
"""A server whose list has no end is cut off there."""
_PREFIX = "task_"

_OTHER_KEYS = ("$defs", "definitions")
"""What a schema refers to from its root, and so has to stay there."""

_PARKED: Json = {
    "type": "object",
    "properties": {
        "type": {"const": "background"},
        "tool": {"type": "string"},
        "timeout_seconds": {"type": "number"},
        "background_id": {"type": "string"},
        "message": {"type": "string"},
    },
    "required": ["type", "background_id", "message"],
}


class Catalogue:
    """What there is to call."""

    def __init__(self, ours: Sequence[Json]) -> None:
        self._ours = ours
        self._theirs: dict[str, Json] = {}
        self._own_names: dict[str, str] = {}
        """Our tools by the names that they are offered under."""

    @property
    def of_servers(self) -> list[Json]:
        """The server's tools, as they were last listed."""
        return [*self._theirs.values()]

    def own(self, name: str) -> str | None:
        """Which of our tools is offered under this name."""
        return self._own_names.get(name)

    def has(self, name: str) -> bool:
        """Whether a tool of this name was listed."""
        return name in self._theirs or name in self._own_names

    def headers(self, name: Any, arguments: Any) -> dict[str, str]:
        """What a tool wants to have of its arguments in the head of an HTTP request."""
        schema = self._theirs.get(name, {}).get("inputSchema") if isinstance(name, str) else None
        if schema is None or not isinstance(arguments, dict) or find_invalid_x_mcp_header(schema):
            return {}
        return mcp_param_headers(x_mcp_header_map(schema), cast("Json", arguments))

    async def listed(self, params: Json, ask: Ask) -> Json:
        """`tools/list` for a client: all of it at once, since our names depend on all of theirs."""
        answer: Json = {}
        theirs: dict[str, Json] = {}
        asked = {key: value for key, value in params.items() if key != "cursor"}
        for _ in range(_PAGES_MOST):
            try:
                answer = await ask(asked)
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                break  # it has no tools
            theirs |= {tool["name"]: tool for tool in _tools_in(answer)}
            if not (cursor := answer.pop("nextCursor", None)):
                break
            asked["cursor"] = cursor
        self._theirs = theirs
        self._own_names = {_free(tool["name"], theirs): tool["name"] for tool in self._ours}
        by_name = {tool["name"]: tool for tool in self._ours}
        own = [{**by_name[real], "name": name} for name, real in self._own_names.items()]
        return {**answer, "tools": [*map(_parkable, theirs.values()), *own]}


def _tools_in(answer: Json) -> list[Json]:
    """What can be called; an entry that is no tool hides none of the others."""
    listed: Any = answer.get("tools")
    given = cast("list[Any]", listed) if isinstance(listed, list) else []
    tools = [cast("Json", each) for each in given if isinstance(each, dict)]
    return [tool for tool in tools if isinstance(tool.get("name"), str)]


def _free(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name = _PREFIX + name
    return name


def _parkable(tool: Json) -> Json:
    """A client checks what it is given against the schema: a parked call has to pass."""
    schema = tool.get("outputSchema")
    if not isinstance(schema, dict):
        return tool
    given = cast("Json", schema)
    inner = {key: value for key, value in given.items() if key not in (*_OTHER_KEYS, "$schema")}
    kept = {key: given[key] for key in (*_OTHER_KEYS, "$schema") if key in given}
    return {**tool, "outputSchema": {"type": "object", "anyOf": [inner, _PARKED], **kept}}
