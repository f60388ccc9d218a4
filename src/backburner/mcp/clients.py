"""Who calls: the session of a client, its tool set and its workspace folder.

Of a client of an earlier version of the protocol the folder is its first root, if it has roots;
of others it is where the server was started, which coding agents do in the workspace.
"""

import asyncio
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import ListRootsRequest, ListRootsResult
from pydantic import ValidationError

from backburner.mcp.access import admission_of
from backburner.mcp.extension import is_modern
from backburner.mcp.naming import folder_of, session_name
from backburner.model.values import value

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from backburner.app import Backburner, Session
    from backburner.tools.toolset import Toolset

_ROOTS_S = 5.0
"""What a client gets for saying where its roots are, once for a connection."""

_REMEMBERED = 1024
"""Connections over HTTP whose roots are known, and sessions whose tool sets are kept."""


@value
class Client:
    """One that is served."""

    session: "Session"
    tools: "Toolset"
    folder: str
    """Where its commands run unless they say where."""


class Clients:
    """Finds the client of each request."""

    def __init__(self, backburner: "Backburner", session: str | None) -> None:
        """``session`` is for all of them; None for one for each client and folder."""
        self._backburner = backburner
        self._session = session
        self._here = os.getcwd()
        self._folders: OrderedDict[str, str] = OrderedDict()
        self._known: OrderedDict[str, Client] = OrderedDict()

    async def of(self, context: "ServerRequestContext[Any, Any]") -> Client:
        """Who has sent this request."""
        folder = await self._folder(context)
        admission = admission_of(context.request)
        name = admission.session or self._session or session_name(_name_of(context), folder)
        key = f"{admission.owner}\0{admission.role.value}\0{name}\0{folder}"
        known = self._known.get(key)
        if known is None:
            place = folder if _is_folder(folder) else self._here
            session = self._backburner.session(
                name, owner=admission.owner, folder=place, role=admission.role.value
            )
            known = Client(session, session.toolset(), place)
            self._known[key] = known
            if len(self._known) > _REMEMBERED:
                _, forgotten = self._known.popitem(last=False)
                await forgotten.tools.close()
        return known

    async def close(self) -> None:
        """They are gone: what they were shown and did not come back for is told again."""
        for client in self._known.values():
            await client.tools.close()
        self._known.clear()

    async def _folder(self, context: "ServerRequestContext[Any, Any]") -> str:
        if is_modern(context):
            return self._here  # there, a server asks for nothing
        headers = getattr(context.request, "headers", None)
        connection = "" if headers is None else headers.get("mcp-session-id") or ""
        if connection not in self._folders:
            self._folders[connection] = await self._first_root(context) or self._here
            if len(self._folders) > _REMEMBERED:
                self._folders.popitem(last=False)
        return self._folders[connection]

    async def _first_root(self, context: "ServerRequestContext[Any, Any]") -> str | None:
        capabilities = context.session.client_capabilities
        if capabilities is None or capabilities.roots is None:
            return None
        try:
            async with asyncio.timeout(_ROOTS_S):
                answer = await context.session.send_request(
                    ListRootsRequest(),
                    ListRootsResult,
                    metadata=ServerMessageMetadata(related_request_id=context.request_id),
                )
        except (MCPError, ValidationError, TimeoutError):
            return None
        for root in answer.roots:
            if (folder := folder_of(str(root.uri))) is not None:
                return folder
        return None


def _name_of(context: "ServerRequestContext[Any, Any]") -> str | None:
    params = context.session.client_params
    return None if params is None else params.client_info.name


def _is_folder(path: str) -> bool:
    return os.path.isdir(path)
