"""The gateway of the Discord server: one websocket, the session behind it, and its resuming."""

import asyncio
import json
import zlib
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

if TYPE_CHECKING:
    from tests.gateway.discord_server import DiscordServer

DISPATCH, HEARTBEAT, IDENTIFY, RESUME, INVALID, HELLO, ACK = 0, 1, 2, 6, 9, 10, 11


class Session:
    """What was told to a bot since it identified; it outlives its connections."""

    def __init__(self, id: str) -> None:
        self.id = id
        self._told: list[dict[str, Any]] = []
        self._socket: _Socket | None = None

    @property
    def connected(self) -> bool:
        return self._socket is not None

    async def tell(self, event: str, data: Any) -> None:
        told = {"op": DISPATCH, "t": event, "s": len(self._told) + 1, "d": data}
        self._told.append(told)
        if self._socket is not None:
            await self._socket.send(told)

    async def take(self, socket: "_Socket", after: int) -> None:
        """Go on over this connection, with what was told since."""
        self._socket = socket
        for told in self._told[after:]:
            await socket.send(told)

    def leave(self, socket: "_Socket") -> None:
        if self._socket is socket:
            self._socket = None

    async def cut(self, code: int) -> None:
        if (socket := self._socket) is not None:
            self._socket = None
            await socket.close(code)


class _Socket:
    """One connection, compressed as `zlib-stream` asks for."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._stream = zlib.compressobj()
        self._order = asyncio.Lock()

    async def send(self, payload: dict[str, Any]) -> None:
        async with self._order:
            data = self._stream.compress(json.dumps(payload).encode())
            data += self._stream.flush(zlib.Z_SYNC_FLUSH)
            try:
                await self._socket.send_bytes(data)
            except (ConnectionError, RuntimeError):
                return  # it is gone: what it missed is told to who resumes

    async def close(self, code: int) -> None:
        await self._socket.close(code=code)


async def converse(server: "DiscordServer", request: web.Request) -> web.WebSocketResponse:
    """Serve one connection until it ends."""
    assert request.query["compress"] == "zlib-stream"
    response = web.WebSocketResponse()
    await response.prepare(request)
    socket = _Socket(response)
    await socket.send({"op": HELLO, "d": {"heartbeat_interval": 41_250}})
    session: Session | None = None
    try:
        async for received in response:
            if received.type is not WSMsgType.TEXT:
                break
            session = await _heard(server, socket, json.loads(received.data)) or session
    finally:
        if session is not None:
            session.leave(socket)
    return response


async def _heard(
    server: "DiscordServer", socket: _Socket, message: dict[str, Any]
) -> Session | None:
    """Answer one message; the session where it begins or resumes one."""
    match message["op"]:
        case op if op == HEARTBEAT:
            await socket.send({"op": ACK})
        case op if op == IDENTIFY:
            if message["d"]["token"] == server.token and server.refuse_with is None:
                return await _identified(server, socket)
            await socket.close(server.refuse_with or 4004)
        case op if op == RESUME:
            known = [each for each in server.sessions if each.id == message["d"]["session_id"]]
            if known:
                server.resumed += 1
                await known[0].take(socket, message["d"]["seq"])
                await known[0].tell("RESUMED", {})
                return known[0]
            await socket.send({"op": INVALID, "d": False})
        case _:
            pass
    return None


async def _identified(server: "DiscordServer", socket: _Socket) -> Session:
    session = Session(f"session{server.number()}")
    server.sessions.append(session)
    await session.take(socket, 0)
    ready = {
        "v": 10,
        "user": server.about_itself(),
        "guilds": [{"id": server.guild()["id"], "unavailable": True}],
        "session_id": session.id,
        "resume_gateway_url": f"{server.url.replace('http', 'ws')}/gateway",
        "application": {"id": server.about_itself()["id"], "flags": 0},
    }
    await session.tell("READY", ready)
    await session.tell("GUILD_CREATE", server.guild())
    return session
