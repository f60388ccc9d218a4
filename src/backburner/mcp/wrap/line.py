"""Between a client and a wrapped server of its own: what each says goes to the other.

Requests are matched by dispatchers, which also carry progress and cancellations across. Only calls
of tools, their list and the server's introduction of itself are touched.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND, PROTOCOL_VERSION_META_KEY

from backburner.mcp import extension
from backburner.mcp.wrap.asked import Asked, ask_back, connection_of
from backburner.mcp.wrap.calls import Calls
from backburner.mcp.wrap.catalogue import Catalogue
from backburner.mcp.wrap.meta import PROGRESS, Json, meta_of
from backburner.mcp.wrap.outbox import Outbox, Params
from backburner.mcp.wrap.server import Server
from backburner.mcp.wrap.upstream import ServerGone, Upstream

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.shared.dispatcher import CallOptions, DispatchContext
    from mcp.shared.transport_context import TransportContext

    from backburner.mcp.clients import Client
    from backburner.work.tools.registry import Registry

_LEFT_TO_DISPATCHERS = ("notifications/cancelled", "notifications/progress")
"""They carry ids of one side, which the other has never seen."""

_LOG = "notifications/message"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Line:
    """One client, or several that are the same to us, before one server."""

    def __init__(self, server: Server, registry: "Registry", budget_s: float | None) -> None:
        self._upstream = Upstream(server, self._asked_by_server, self._told_by_server)
        self._budget_s = budget_s
        self.calls = Calls(registry, self._upstream, budget_s)
        self._catalogue: Catalogue | None = None
        self._open: dict[Asked, None] = {}
        """What the client waits for, oldest first."""
        self._listening: dict[str, Asked] = {}
        """By the name that a request has at the server, which subscriptions are called by."""
        self._connection: Connection | None = None
        self._to_client = Outbox(self._tell_client)
        self._to_server = Outbox(self._upstream.notify)
        self._pumps = [asyncio.create_task(box.run()) for box in (self._to_client, self._to_server)]
        self.idle_since = asyncio.get_running_loop().time()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for anything, and nothing goes on."""
        return not self._open and not self.calls.running

    @property
    def is_resting(self) -> bool:
        """Whether it has no server at the moment."""
        return not self._upstream.lives

    async def rest(self) -> None:
        """Let the server go. The next request starts one, which is told what was agreed on."""
        await self._upstream.rest()

    async def retire(self) -> None:
        """The client is gone: wait for what goes on in the background, then end the server."""
        self._connection = None
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        await self.calls.finished()
        await self._upstream.close()

    async def close(self) -> None:
        """End the server, whatever goes on."""
        for pump in self._pumps:
            pump.cancel()
        await self._upstream.close()

    # From the client

    def told_by_client(self, method: str, params: Params) -> None:
        """A notification, in the order in which they come."""
        if method == "notifications/initialized":
            self._upstream.remember("initialized", method, params)
        if method not in _LEFT_TO_DISPATCHERS:
            self._to_server.put(method, params)

    async def asked_by_client(self, asked: Asked, answer: Callable[[], Awaitable[Json]]) -> Json:
        """The ``answer`` to a request, after what was said before and what comes before it."""
        self._connection = connection_of(asked.context)
        await self._to_server.written()
        self._open[asked] = None
        try:
            given = await answer()
            await self._to_client.written()
        except ServerGone as error:
            raise MCPError(code=INTERNAL_ERROR, message=str(error)) from None
        except MCPError:
            await self._to_client.written()
            raise
        finally:
            del self._open[asked]
            self.idle_since = asyncio.get_running_loop().time()
        if PROTOCOL_VERSION_META_KEY in meta_of(asked.context.params):
            return _completed(asked.method, given)
        return given

    async def passed(self, asked: Asked, params: Json | None = None) -> Json:
        """A request as it is, and its progress back."""
        given = asked.params if params is None else params
        number = self._upstream.number()
        self._listening[number] = asked
        try:
            answer = await self._upstream.request(
                asked.method, given or None, id=number, on_progress=asked.report
            )
        finally:
            del self._listening[number]
        self._keep_in_mind(asked.method, given)
        return _renamed(answer, asked)

    async def introduced(self, asked: Asked) -> Json:
        """The server's introduction of itself, with what there is beside."""
        answer = await self.passed(asked)
        capabilities: Json = {**(answer.get("capabilities") or {})}
        capabilities.setdefault("tools", {})
        if asked.is_modern:
            extensions: Json = {**(capabilities.get("extensions") or {})}
            capabilities["extensions"] = {extension.TASKS: {}, **extensions}
        answer = {**answer, "capabilities": capabilities}
        if self._budget_s is not None:
            note = (
                f"A call that takes longer than {self._budget_s:g} s goes on in the background:"
                " its result names the task. You are told when it ends; background_output reads it."
            )
            before = answer.get("instructions")
            answer["instructions"] = f"{before}\n\n{note}" if before else note
        return answer

    def _keep_in_mind(self, method: str, given: Json) -> None:
        """What a server that is started again has to be told too."""
        if method == "initialize":
            self._upstream.remember("initialize", method, given)
        elif method == "logging/setLevel":
            self._upstream.remember("level", method, given)
        elif method == "resources/subscribe":
            self._upstream.remember(f"subscription {given.get('uri')}", method, given)
        elif method == "resources/unsubscribe":
            self._upstream.forget(f"subscription {given.get('uri')}")

    # Tools

    async def listed(self, client: "Client", params: Json) -> Json:
        """`tools/list`: the server's, and ours beside them."""

        async def ask(params: Json) -> Json:
            return await self._upstream.request("tools/list", params or None)

        catalogue = self._catalogue_for(client)
        answer = await catalogue.listed(params, ask)
        for tool in catalogue.of_servers:
            self.calls.register(tool)
        return answer

    async def catalogue(self, client: "Client", asked: Asked) -> Catalogue:
        """What there is to call; asked for again where it does not have what is called."""
        catalogue = self._catalogue_for(client)
        if not catalogue.has(str(asked.params.get("name"))):
            meta = meta_of(asked.params)
            meta.pop(PROGRESS, None)
            await self.listed(client, {"_meta": meta} if meta else {})
        return catalogue

    def _catalogue_for(self, client: "Client") -> Catalogue:
        if self._catalogue is None:
            self._catalogue = Catalogue(client.tools.schemas("mcp"))
            self._upstream.headers_of_call = self._catalogue.headers
        return self._catalogue

    # From the server

    def _told_by_server(self, method: str, params: Params) -> bool:
        if method not in _LEFT_TO_DISPATCHERS:
            self._to_client.put(method, params)
        return True

    async def _tell_client(self, method: str, params: Params) -> None:
        """On the way back of the request that it belongs to, or else by itself."""
        named = meta_of(params).get(SUBSCRIPTION_ID_META_KEY)
        if named is not None:
            asked = self._listening.get(str(named))
            if asked is not None:
                told = _renamed({**(params or {})}, asked)
                await _notify_listener(asked, method, told)
        elif method == _LOG and (asked := self._newest(lambda each: each.takes_logs)) is not None:
            await asked.back.notify(method, params)
        elif self._connection is not None:
            await self._connection.notify(method, params)

    async def _asked_by_server(
        self, dispatch: "DispatchContext[TransportContext]", method: str, params: Params
    ) -> Json:
        if method == "ping":
            return {}
        options: CallOptions = {}
        if PROGRESS in meta_of(params):
            options["on_progress"] = dispatch.progress
        await self._to_client.written()
        asked = self._newest(lambda each: each.back.can_send_request)
        if asked is None and self._connection is None:
            raise MCPError(code=INTERNAL_ERROR, message="the client is gone")
        return await ask_back(asked, self._connection, method, params, options)

    def _newest(self, suits: Callable[[Asked], bool]) -> Asked | None:
        """Pipes do not say which request a message belongs to: most likely to the last one."""
        calls = [each for each in self._open if each.method == "tools/call" and suits(each)]
        others = [each for each in self._open if suits(each)]
        return calls[-1] if calls else others[-1] if others else None

    # Subscriptions

    async def listened(self, asked: Asked, follow: Callable[[], Awaitable[Any]]) -> Json:
        """A subscription to the server, and to tasks of ours beside, which ``follow`` tells of.

        The server's acknowledgement is amended; one that has no subscriptions leaves it to us.
        """
        params = asked.params
        wanted: Json = {**cast("Json", params["notifications"])}
        rest = [each for each in wanted.pop("taskIds") if each not in asked.tasks]
        if rest:
            wanted["taskIds"] = rest
        if not wanted:
            return await follow()
        passing = asyncio.ensure_future(self.passed(asked, {**params, "notifications": wanted}))
        heard = asyncio.ensure_future(asked.acknowledged.wait())
        following: asyncio.Future[Any] | None = None
        try:
            await asyncio.wait((passing, heard), return_when=asyncio.FIRST_COMPLETED)
            if not asked.acknowledged.is_set() and _is_missing(passing):
                return await follow()
            following = asyncio.ensure_future(follow())
            await asyncio.gather(passing, following)
            return passing.result()
        finally:
            for each in (passing, heard, following):
                if each is not None:
                    each.cancel()


def _is_missing(passing: "asyncio.Future[Json]") -> bool:
    error = passing.exception()
    if error is None:
        return False
    if isinstance(error, MCPError) and error.code == METHOD_NOT_FOUND:
        return True
    raise error


async def _notify_listener(asked: Asked, method: str, params: Json) -> None:
    if method == _ACKNOWLEDGED and asked.tasks:
        honored: Json = {**(params.get("notifications") or {})}
        honored["taskIds"] = [*asked.tasks, *(honored.get("taskIds") or ())]
        params = {**params, "notifications": honored}
    await asked.back.notify(method, params)
    if method == _ACKNOWLEDGED:
        asked.acknowledged.set()


def _renamed(said: Json, asked: Asked) -> Json:
    """With the name that the client itself has given to its subscription."""
    meta = meta_of(said)
    if SUBSCRIPTION_ID_META_KEY not in meta:
        return said
    return {**said, "_meta": {**meta, SUBSCRIPTION_ID_META_KEY: asked.id}}


def _completed(method: str, answer: Json) -> Json:
    """With what later protocols ask of every result; what the server says itself stays."""
    caching = {"ttlMs": 0, "cacheScope": "private"} if method == "tools/list" else {}
    return {"resultType": "complete", **caching, **answer}
