"""A server that speaks Discord: the HTTP interface (v10) and the gateway over a websocket.

The gateway compresses, counts what it tells, and tells it again to a session that resumes. A nonce
that comes again with `enforce_nonce` is answered with the message that is there already. What it
was asked is kept; what it answers can be spoiled.
"""

import functools
import json
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.gateway.discord_session import Session, converse
from tests.gateway.wire import Wire

TOKEN = "MTIz.discord-s3cret.token-of-a-bot"
BOT = 900
ADA = 1001
DIRECT = 5001
"""Ada's private chat with the bot."""
GUILD, ROOM, THREAD = 7000, 7001, 7002
"""A server, a channel of it, and a thread in that channel."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer in the place of the right one."""

    status: int
    body: dict[str, Any] = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    after: bool = False
    """Carried out, and then the connection is cut without an answer."""

    @classmethod
    def wait(cls, seconds: float) -> "Fault":
        """The limit of a bucket is reached."""
        headers = {
            "Via": "1.1 google",
            "Retry-After": str(seconds),
            "X-RateLimit-Bucket": "posts",
            "X-RateLimit-Limit": "5",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(time.time() + seconds),
            "X-RateLimit-Reset-After": str(seconds),
        }
        body = {"message": "You are being rate limited.", "retry_after": seconds, "global": False}
        return cls(429, body, headers)


@dataclass(frozen=True, slots=True)
class Sent:
    """A post that the bot made."""

    id: int
    channel: int
    fields: dict[str, Any]
    files: list[tuple[str, bytes]]

    @property
    def text(self) -> str:
        """What it says."""
        return self.fields.get("content") or ""

    @property
    def buttons(self) -> dict[str, str]:
        """Labels and actions."""
        return buttons_of(self.fields)


def buttons_of(fields: dict[str, Any]) -> dict[str, str]:
    """Labels and actions of a post, or of a change of one."""
    rows: list[Any] = fields.get("components") or []
    return {each["label"]: each["custom_id"] for row in rows for each in row["components"]}


class DiscordServer(Wire):
    """The server while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.token = TOKEN
        self.sent: list[Sent] = []
        self.repeated = 0
        """How many posts came whose nonce was there."""
        self.edits: list[tuple[int, dict[str, Any]]] = []
        self.acknowledged: list[dict[str, Any]] = []
        self.forgotten: list[str] = []
        """Tokens of interactions whose note that we think was taken away."""
        self.commands: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.refuse_with: int | None = None
        """What the gateway closes with when somebody identifies."""
        self.sessions: list[Session] = []
        self.resumed = 0
        self._nonces: dict[str, int] = {}
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._next_id = 10_000

    def application(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        api = "/api/v10"
        for method, path, handler in (
            ("GET", "/users/@me", self._me),
            ("GET", "/oauth2/applications/@me", self._about),
            ("PUT", "/applications/{app}/commands", self._menu),
            ("GET", "/channels/{channel}", self._channel),
            ("POST", "/channels/{channel}/messages", self._post),
            ("PATCH", "/channels/{channel}/messages/{message}", self._edit),
            ("POST", "/interactions/{id}/{token}/callback", self._acknowledge),
            ("DELETE", "/webhooks/{app}/{token}/messages/@original", self._forget),
        ):
            app.router.add_route(method, api + path, self._guarded(method, path, handler))
        app.router.add_get("/gateway", functools.partial(converse, self))
        app.router.add_get("/attachments/{name}", self._file)
        return app

    # ------------------------------------------------------------------------------ the people

    def says(
        self, text: str, *, channel: int = DIRECT, user: int = ADA, bot: bool = False, **more: Any
    ) -> int:
        """Somebody writes; the id of their message."""
        number = self.number()
        place: dict[str, Any] = {}
        if channel != DIRECT:
            place = {"guild_id": str(GUILD), "member": _member()}
        self.tells(
            "MESSAGE_CREATE", {**_message(number, channel, text, user, bot), **place, **more}
        )
        return number

    def edits_own(self, text: str) -> None:
        """Somebody changes a message of theirs."""
        self.tells("MESSAGE_UPDATE", _message(self.number(), DIRECT, text, ADA, bot=False))

    def commands_with(
        self, name: str, text: str = "", *, channel: int = DIRECT, **more: Any
    ) -> int:
        """Somebody uses a slash command."""
        options: list[dict[str, Any]] = [{"name": "text", "type": 3, "value": text}] if text else []
        options += more.pop("options", [])
        data = {"id": "1", "name": name, "type": 1, "options": options, **more}
        return self._interact(2, channel, data, {})

    def presses(self, post: Sent, action: str) -> int:
        """Somebody presses a button of a post."""
        message = {"message": _message(post.id, post.channel, post.text, BOT, bot=True)}
        return self._interact(3, post.channel, {"custom_id": action, "component_type": 2}, message)

    def _interact(self, kind: int, channel: int, data: dict[str, Any], more: dict[str, Any]) -> int:
        number = self.number()
        who: dict[str, Any] = {"user": _user(ADA)}
        if channel != DIRECT:
            who = {"guild_id": str(GUILD), "member": {**_member(), "user": _user(ADA)}}
        interaction = {
            "id": str(number),
            "application_id": str(BOT),
            "type": kind,
            "token": f"interaction-token-{number}",
            "version": 1,
            "attachment_size_limit": 1,
            "channel_id": str(channel),
            "channel": _channel(channel),
            "data": data,
            **who,
            **more,
        }
        self.tells("INTERACTION_CREATE", interaction)
        return number

    def tells(self, event: str, data: dict[str, Any]) -> None:
        """Any event, to the newest session; without one it is lost, as there."""

        async def tell() -> None:
            if self.sessions:
                await self.sessions[-1].tell(event, data)

        self.do(tell())

    def cut_socket(self, code: int = 4000) -> None:
        """Close the gateway's connections; sessions can be resumed."""

        async def cut() -> None:
            for session in self.sessions:
                await session.cut(code)

        self.do(cut())

    @property
    def listeners(self) -> int:
        """How many sessions are connected."""
        return sum(session.connected for session in self.sessions)

    def spoil(self, call: str, *faults: Fault) -> None:
        """Answer the next calls, such as ``POST /channels/{channel}/messages``, with these."""
        self._faults[call].extend(faults)

    # --------------------------------------------------------------------------------- the bot

    def number(self) -> int:
        self._next_id += 1
        return self._next_id

    def about_itself(self) -> dict[str, Any]:
        """The user that the bot is."""
        return {**_user(BOT, bot=True), "username": "ours"}

    def guild(self) -> dict[str, Any]:
        """The server that the bot is in."""
        return {
            "id": str(GUILD),
            "name": "a server",
            "owner_id": str(ADA),
            "member_count": 2,
            "roles": [],
            "emojis": [],
            "stickers": [],
            "features": [],
            "channels": [_channel(ROOM)],
            "threads": [_channel(THREAD)],
            "members": [{**_member(), "user": self.about_itself()}],
            "presences": [],
            "voice_states": [],
            "verification_level": 0,
            "default_message_notifications": 0,
            "explicit_content_filter": 0,
            "mfa_level": 0,
            "nsfw_level": 0,
            "premium_tier": 0,
            "preferred_locale": "en-US",
            "system_channel_flags": 0,
        }

    def _guarded(
        self, method: str, path: str, handler: Callable[[web.Request], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def guarded(request: web.Request) -> web.StreamResponse:
            secret = request.headers.get("Authorization")
            by_token = "token" in request.match_info  # an interaction's own
            if not by_token and secret != f"Bot {self.token}":
                return _json({"message": "401: Unauthorized", "code": 0}, status=401)
            faults = self._faults[f"{method} {path}"]
            fault = faults.popleft() if faults else None
            if fault is not None and not fault.after:
                return _json(fault.body, status=fault.status, headers=fault.headers)
            answer = await handler(request)
            if fault is not None:
                assert request.transport is not None
                request.transport.close()
            return answer

        return guarded

    async def _me(self, _: web.Request) -> web.Response:
        return _json(self.about_itself())

    async def _about(self, _: web.Request) -> web.Response:
        about = {"id": str(BOT), "name": "ours", "description": "", "icon": None, "flags": 0}
        more = {"bot_public": False, "bot_require_code_grant": False, "verify_key": "k"}
        return _json({**about, **more, "owner": _user(ADA)})

    async def _menu(self, request: web.Request) -> web.Response:
        self.commands = await request.json()
        return _json(
            [
                {**each, "id": str(self.number()), "application_id": str(BOT), "version": "1"}
                for each in self.commands
            ]
        )

    async def _channel(self, request: web.Request) -> web.Response:
        return _json(_channel(int(request.match_info["channel"])))

    async def _post(self, request: web.Request) -> web.Response:
        fields, files = await _read(request)
        channel = int(request.match_info["channel"])
        if len(fields.get("content") or "") > 2000:
            body = {"message": "Invalid Form Body", "code": 50035}
            return _json(body, status=400)
        if not fields.get("content") and not files:
            body = {"message": "Cannot send an empty message", "code": 50006}
            return _json(body, status=400)
        nonce = str(fields.get("nonce", ""))
        assert len(nonce) <= 25
        known = self._nonces.get(nonce) if fields.get("enforce_nonce") else None
        if known is None:
            sent = Sent(self.number(), channel, fields, files)
            self.sent.append(sent)
            known = self._nonces[nonce] = sent.id
        else:
            self.repeated += 1
        message = _message(known, channel, fields.get("content") or "", BOT, bot=True)
        return _json({**message, "nonce": nonce})

    async def _edit(self, request: web.Request) -> web.Response:
        fields, _ = await _read(request)
        number, channel = int(request.match_info["message"]), int(request.match_info["channel"])
        if number not in {each.id for each in self.sent}:
            return _json({"message": "Unknown Message", "code": 10008}, status=404)
        self.edits.append((number, fields))
        return _json(_message(number, channel, fields["content"], BOT, bot=True))

    async def _acknowledge(self, request: web.Request) -> web.Response:
        self.acknowledged.append(await request.json())
        number = request.match_info["id"]
        return _json({"interaction": {"id": number, "type": 2}})

    async def _forget(self, request: web.Request) -> web.Response:
        self.forgotten.append(request.match_info["token"])
        return web.Response(status=204)

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.files:
            return web.Response(status=404)
        return web.Response(body=self.files[name])

    async def cut_off(self) -> None:
        for session in self.sessions:
            await session.cut(1001)


def attachment(server: DiscordServer, name: str, data: bytes) -> dict[str, Any]:
    """A file that comes with a message, kept by the server."""
    server.files[name] = data
    return {
        "id": "1",
        "filename": name,
        "size": len(data),
        "url": f"{server.url}/attachments/{name}",
        "proxy_url": "",
        "content_type": "text/plain; charset=utf-8",
    }


def _user(number: int, *, bot: bool = False) -> dict[str, Any]:
    return {
        "id": str(number),
        "username": "ada",
        "global_name": "Ada",
        "discriminator": "0",
        "avatar": None,
        "bot": bot,
    }


def _member() -> dict[str, Any]:
    joined = "2026-01-01T00:00:00+00:00"
    return {"roles": [], "joined_at": joined, "deaf": False, "mute": False, "flags": 0}


def _channel(number: int) -> dict[str, Any]:
    if number == DIRECT:
        return {"id": str(number), "type": 1, "recipients": [_user(ADA)], "last_message_id": None}
    room = {"id": str(number), "guild_id": str(GUILD), "name": "a room", "position": 0}
    if number != THREAD:
        return {**room, "type": 0, "permission_overwrites": [], "nsfw": False, "parent_id": None}
    return {
        **room,
        "type": 11,
        "parent_id": str(ROOM),
        "owner_id": str(ADA),
        "message_count": 1,
        "member_count": 1,
        "thread_metadata": {
            "archived": False,
            "auto_archive_duration": 60,
            "archive_timestamp": "2026-01-01T00:00:00+00:00",
            "locked": False,
        },
    }


def _message(number: int, channel: int, text: str, user: int, bot: bool) -> dict[str, Any]:
    return {
        "id": str(number),
        "channel_id": str(channel),
        "author": _user(user, bot=bot),
        "content": text,
        "timestamp": "2026-01-01T00:00:00+00:00",
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "pinned": False,
        "type": 0,
    }


def _json(body: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """As Discord says it: the library knows JSON by exactly this type."""
    data = json.dumps(body).encode()
    return web.Response(body=data, status=status, headers=headers, content_type="application/json")


async def _read(request: web.Request) -> tuple[dict[str, Any], list[tuple[str, bytes]]]:
    if request.content_type == "application/json":
        return await request.json(), []
    fields: dict[str, Any] = {}
    files: list[tuple[str, bytes]] = []
    for name, value in (await request.post()).items():
        if name == "payload_json":
            assert isinstance(value, str | bytes)
            fields = json.loads(value)
        elif isinstance(value, web.FileField):
            files.append((value.filename, value.file.read()))
    return fields, files
