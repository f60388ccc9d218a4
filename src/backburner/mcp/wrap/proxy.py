"""Between one client and one wrapped server: what each says goes to the other.

Requests are matched by the two dispatchers, which also carry progress and cancellations across.
A client has a server of its own, so nothing of one client can reach another.
"""

import asyncio
import contextlib
import logging
import os
from dataclasses import dataclass
from typing import Any, cast

from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    INTERNAL_ERROR,
    PROTOCOL_VERSION_META_KEY,
)

from backburner.app import Backburner, Session
from backburner.mcp.naming import folder_of, session_name
from backburner.mcp.wrap.calls import Calls, failed, said
from backburner.mcp.wrap.catalogue import Catalogue
from backburner.mcp.wrap.meta import PROGRESS, Json, meta_of
from backburner.mcp.wrap.outbox import Outbox, Params
from backburner.mcp.wrap.server import Server
from backburner.mcp.wrap.streams import Streams
from backburner.mcp.wrap.upstream import ServerGone, Upstream
from backburner.tools.seen import Answer
from backburner.tools.toolset import Toolset

_log = logging.getLogger("backburner.mcp.wrap")

Dispatch = DispatchContext[TransportContext]

SIGNALS_KEY = "backburner/signals"
"""In `_meta` of a result: what rides along with it, for programs."""

_ENVELOPE = (PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY)
_ROOTS_S = 5.0
"""What a client gets for saying where its roots are."""
_LEFT_TO_DISPATCHERS = ("notifications/cancelled", "notifications/progress")
"""They carry ids of one side, which the other has never seen."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What a client has here once it is known who it is."""

    calls: Calls
    toolset: Toolset
    catalogue: Catalogue


class Proxy:
    """One client before one server."""

    def __init__(
        self, backburner: Backburner, session: str | None, server: Server, budget_s: float | None
    ) -> None:
        """``session`` is None for the one of the client in the present folder."""
        self._backburner = backburner
        self._session = session
        self._upstream = Upstream(server, self._asked_by_server, self._told_by_server)
        self._budget_s = budget_s
        self._seat: Seat | None = None
        self._sitting = asyncio.Lock()
        self._name = ""
        self._has_roots = False
        self._modern = False
        self._envelope: Json = {}
        """What every request says of the client, in later protocols."""
        self._client: JSONRPCDispatcher[TransportContext] | None = None
        self._to_client = Outbox(self._tell_client)
        self._to_server = Outbox(self._upstream.notify)

    async def serve(self, streams: Streams) -> None:
        """Until the client goes. What is not in the background by then is cancelled (D6)."""
        pumps = [asyncio.create_task(box.run()) for box in (self._to_client, self._to_server)]
        self._client = JSONRPCDispatcher(*streams, inline_methods=frozenset({"initialize"}))
        try:
            await self._client.run(self._asked_by_client, _nothing, self._told_by_client)
        finally:
            self._client = None
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            if self._seat is not None:
                await self._seat.toolset.close()

    async def goes_on(self) -> bool:
        """Whether something goes on in the background, now that the client is gone."""
        return self._seat is not None and await self._seat.calls.go_on()

    async def finished(self) -> None:
        """Wait for what goes on in the background."""
        if self._seat is not None:
            await self._seat.calls.finished()

    async def close(self) -> None:
        """End the wrapped server."""
        await self._upstream.close()

    # From the client

    def _told_by_client(self, method: str, params: Params) -> bool:
        if method == "notifications/initialized":
            self._upstream.remember("initialized", method, params)
        if method not in _LEFT_TO_DISPATCHERS:
            self._to_server.put(method, params)
        return True

    async def _asked_by_client(self, dispatch: Dispatch, method: str, params: Params) -> Json:
        given: Json = {**(params or {})}
        self._meet(given)
        await self._to_server.written()
        try:
            answer = await self._answer(dispatch, method, given)
        except ServerGone as error:
            raise MCPError(code=INTERNAL_ERROR, message=str(error)) from None
        except MCPError:
            raise
        except Exception:  # noqa: BLE001 - the dispatcher would tell its text
            _log.exception("%s", method)
            raise MCPError(code=INTERNAL_ERROR, message="an internal error of the wrap") from None
        await self._to_client.written()  # what came before the answer
        return _completed(method, answer) if PROTOCOL_VERSION_META_KEY in meta_of(given) else answer

    async def _answer(self, dispatch: Dispatch, method: str, given: Json) -> Json:
        match method:
            case "ping":
                return {}
            case "initialize" | "server/discover":
                answer = await self._passed(dispatch, method, given)
                if method == "initialize":
                    self._has_roots = "roots" in (given.get("capabilities") or {})
                    self._upstream.remember("initialize", method, given)
                return self._introduced(answer)
            case "tools/list":
                return await self._listed(given)
            case "tools/call":
                return await self._called(dispatch, given)
            case _:
                answer = await self._passed(dispatch, method, given)
                self._keep_in_mind(method, given)
                return answer

    def _meet(self, given: Json) -> None:
        """Who the client is, as it says in its first request, or in each."""
        meta = meta_of(given)
        self._modern = PROTOCOL_VERSION_META_KEY in meta
        if self._modern:
            self._envelope = {key: meta[key] for key in _ENVELOPE if key in meta}
        said = meta.get(CLIENT_INFO_META_KEY) if self._modern else given.get("clientInfo")
        if isinstance(said, dict):
            self._name = str(cast("Json", said).get("name") or "")

    async def _seated(self) -> Seat:
        """Its place, found when it is first needed: it may have to be asked where it works."""
        async with self._sitting:
            if self._seat is None:
                folder = await self._folder()
                name = self._session or session_name(self._name, folder)
                session = self._backburner.session(name, folder=_existing(folder))
                calls = Calls(session, self._backburner.registry, self._upstream, self._budget_s)
                toolset = session.toolset()
                catalogue = Catalogue(toolset.schemas("mcp"))
                self._upstream.headers_of_call = catalogue.headers
                self._seat = Seat(calls, toolset, catalogue)
        return self._seat

    async def _folder(self) -> str:
        """Its first root, where it has roots and this protocol lets us ask; else where we are."""
        if self._has_roots and not self._modern and self._client is not None:
            with contextlib.suppress(MCPError, TimeoutError, AttributeError, IndexError):
                async with asyncio.timeout(_ROOTS_S):
                    answer = await self._client.send_raw_request("roots/list", None)
                first: Any = answer.get("roots", [])[0]
                return folder_of(str(first.get("uri"))) or os.getcwd()
        return os.getcwd()

    def _keep_in_mind(self, method: str, given: Json) -> None:
        """What a server that is started again has to be told too."""
        if method == "logging/setLevel":
            self._upstream.remember("level", method, given)
        elif method == "resources/subscribe":
            self._upstream.remember(f"subscription {given.get('uri')}", method, given)
        elif method == "resources/unsubscribe":
            self._upstream.forget(f"subscription {given.get('uri')}")

    async def _passed(self, dispatch: Dispatch, method: str, given: Json) -> Json:
        """A request as it is, and its progress back."""
        wants = PROGRESS in meta_of(given)
        return await self._upstream.request(
            method,
            given or None,
            id=dispatch.request_id,
            on_progress=dispatch.progress if wants else None,
        )

    def _introduced(self, answer: Json) -> Json:
        """The server's introduction of itself, with what there is beside."""
        capabilities: Json = {**(answer.get("capabilities") or {})}
        capabilities.setdefault("tools", {})
        answer = {**answer, "capabilities": capabilities}
        if self._budget_s is not None:
            note = (
                f"A call that takes longer than {self._budget_s:g} s goes on in the background:"
                " its result names the task. You are told when it ends; background_output reads it."
            )
            before = answer.get("instructions")
            answer["instructions"] = f"{before}\n\n{note}" if before else note
        return answer

    async def _listed(self, given: Json) -> Json:
        async def ask(params: Json) -> Json:
            return await self._upstream.request("tools/list", params or None)

        seat = await self._seated()
        answer = await seat.catalogue.listed(given, ask)
        for tool in seat.catalogue.of_servers:
            seat.calls.register(tool)
        return answer

    # Calls

    async def _called(self, dispatch: Dispatch, given: Json) -> Json:
        seat, name = await self._seated(), str(given.get("name"))
        if not seat.catalogue.has(name):
            with contextlib.suppress(ServerGone):
                await self._listed({"_meta": {**self._envelope}} if self._envelope else {})
        if (own := seat.catalogue.own(name)) is not None:
            return _result(await seat.toolset.call(own, _placed(own, given, seat.calls.session)))
        await seat.toolset.heard()
        try:
            if seat.catalogue.has(name):
                answer = await seat.calls.call(given, dispatch)
            else:
                answer = await self._passed(dispatch, "tools/call", given)
        except ServerGone as error:
            answer = failed(str(error))
        return await self._with_signals(seat, answer)

    async def _with_signals(self, seat: Seat, answer: Json) -> Json:
        if answer.get("resultType", "complete") != "complete" or "content" not in answer:
            return answer  # not the end of the call, or nothing that we know
        riding = await seat.toolset.accompany(Answer(""))
        if not riding.text:
            return answer
        told = {"type": "text", "text": riding.text}
        meta = {**meta_of(answer), SIGNALS_KEY: riding.data["signals"]}
        return {**answer, "content": [*answer["content"], told], "_meta": meta}

    # From the server

    def _told_by_server(self, method: str, params: Params) -> bool:
        if method not in _LEFT_TO_DISPATCHERS:
            self._to_client.put(method, params)
        return True

    async def _tell_client(self, method: str, params: Params) -> None:
        if self._client is not None:
            await self._client.notify(method, params)

    async def _asked_by_server(self, dispatch: Dispatch, method: str, params: Params) -> Json:
        if method == "ping":
            return {}
        if self._client is None:
            raise MCPError(code=INTERNAL_ERROR, message="the client is gone")
        options: CallOptions = {}
        if PROGRESS in meta_of(params):
            options["on_progress"] = dispatch.progress
        await self._to_client.written()
        return await self._client.send_raw_request(method, params, options)


def _completed(method: str, answer: Json) -> Json:
    """With what later protocols ask of every result; what the server says itself stays."""
    caching = {"ttlMs": 0, "cacheScope": "private"} if method == "tools/list" else {}
    return {"resultType": "complete", **caching, **answer}


def _existing(folder: str) -> str:
    """A root may be on another machine."""
    return folder if os.path.isdir(folder) else os.getcwd()


def _placed(own: str, given: Json, session: Session) -> Any:
    """Arguments of one of ours: a command runs where the client works, unless it says where."""
    arguments: Any = given.get("arguments")
    if own != "background_run" or not isinstance(arguments, dict):
        return arguments
    words = cast("Json", arguments)
    return {"cwd": session.folder, **words} if "command" in words else words


def _result(answer: Answer) -> Json:
    """What one of our tools says."""
    return {**said(answer.text, answer.data), "isError": answer.is_error}


async def _nothing(_: Dispatch, __: str, ___: Params) -> None:
    """Every notification is taken in the order in which it comes, before this."""
