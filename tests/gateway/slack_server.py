"""A server that speaks Slack: the Web API, socket mode, and events over HTTP that it signs.

An envelope that was not acknowledged is told again over the next connection; a post is made as
often as it is asked for, and found in the history with its metadata. What it was asked is kept;
what it answers can be spoiled.
"""

import hashlib
import hmac
import itertools
import json
import time
import urllib.parse
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import WSMsgType, web

from tests.gateway.wire import Wire

TOKEN = "xoxb-slack-s3cret-token-of-a-bot"
APP_TOKEN = "xapp-slack-s3cret-token-of-an-app"
SIGNING_SECRET = "slack-signing-s3cret"
BOT, ADA = "UBOT", "UADA"
DIRECT, ROOM = "D1", "C1"


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer in the place of the right one."""

    error: str = "fatal_error"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    after: bool = False
    """Carried out, and then the connection is cut without an answer."""

    @classmethod
    def wait(cls, seconds: int) -> "Fault":
        """Too much was asked."""
        return cls("ratelimited", 429, {"Retry-After": str(seconds)})


@dataclass(slots=True)
class Sent:
    """A post that the bot made."""

    ts: str
    channel: str
    thread: str | None
    fields: dict[str, Any]
    files: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def text(self) -> str:
        """What it says."""
        return self.fields.get("text", "")

    @property
    def buttons(self) -> dict[str, str]:
        """Labels and actions."""
        return buttons_of(self.fields)


def buttons_of(fields: dict[str, Any]) -> dict[str, str]:
    """Labels and actions of a post, or of a change of one."""
    rows = [each for each in fields.get("blocks", []) if each["type"] == "actions"]
    return {each["text"]["text"]: each["value"] for row in rows for each in row["elements"]}


class SlackServer(Wire):
    """The server while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.token = TOKEN
        self.sent: list[Sent] = []
        self.edits: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.uploaded: dict[str, tuple[str, bytes]] = {}
        self.files: dict[str, bytes] = {}
        self.unacknowledged: dict[str, dict[str, Any]] = {}
        self.connections = 0
        self._sockets: list[web.WebSocketResponse] = []
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._numbers = itertools.count(1)

    def application(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/api/{method}", self._called)
        app.router.add_get("/link", self._converse)
        app.router.add_post("/upload/{id}", self._upload)
        app.router.add_get("/files/{name}", self._file)
        return app

    # ------------------------------------------------------------------------------ the people

    def message(
        self, text: str, *, channel: str = DIRECT, user: str = ADA, **more: Any
    ) -> dict[str, Any]:
        """The body of an event: somebody wrote."""
        event: dict[str, Any] = {
            "type": "message",
            "channel": channel,
            "channel_type": "im" if channel.startswith("D") else "channel",
            "user": user,
            "text": text,
            "ts": self.number(),
            **more,
        }
        return {"type": "event_callback", "event_id": self.number(), "event": event, **_TEAM}

    def command(self, name: str, text: str = "", *, channel: str = DIRECT) -> dict[str, Any]:
        """The body of a slash command."""
        return {
            "command": name,
            "text": text,
            "channel_id": channel,
            "user_id": ADA,
            "user_name": "ada",
            "trigger_id": self.number(),
            **_TEAM,
        }

    def press(self, post: Sent, action: str) -> dict[str, Any]:
        """The body of a button that was pressed."""
        pressed = {"action_id": "backburner-0", "value": action, "action_ts": self.number()}
        container = {"type": "message", "message_ts": post.ts, "channel_id": post.channel}
        message = {"ts": post.ts, **({"thread_ts": post.thread} if post.thread else {})}
        return {
            "type": "block_actions",
            "user": {"id": ADA, "username": "ada", "team_id": "T1"},
            "team": {"id": "T1"},
            "container": container,
            "message": message,
            "actions": [{**pressed, "type": "button", "block_id": "b"}],
        }

    def tells(self, body: dict[str, Any]) -> str:
        """Over the socket, until it is acknowledged; the id of the envelope."""
        kinds = {"event_callback": "events_api", "block_actions": "interactive"}
        kind = kinds.get(body.get("type", ""), "slash_commands")
        envelope = {"envelope_id": f"e{self.number()}", "type": kind, "payload": body}
        self.do(self._tell(envelope))
        return str(envelope["envelope_id"])

    def says(self, text: str, **more: Any) -> str:
        """Somebody writes."""
        return self.tells(self.message(text, **more))

    def requests(
        self, port: int, body: dict[str, Any], *, secret: str = SIGNING_SECRET
    ) -> tuple[int, str]:
        """The same as a signed request to us; the status and text of our answer."""
        return self.do(_request(port, body, secret))

    def asks_to_refresh(self) -> None:
        """Slack is about to close the socket: another is to be opened."""

        async def ask() -> None:
            for socket in self._sockets:
                await socket.send_json({"type": "disconnect", "reason": "refresh_requested"})

        self.do(ask())

    def cut_socket(self) -> None:
        """Close what is connected."""
        self.do(self.cut_off())

    def spoil(self, method: str, *faults: Fault) -> None:
        """Answer the next calls of a method with these."""
        self._faults[method].extend(faults)

    @property
    def listeners(self) -> int:
        """How many sockets are open."""
        return sum(not each.closed for each in self._sockets)

    # --------------------------------------------------------------------------------- the bot

    def number(self) -> str:
        return f"{int(time.time())}.{next(self._numbers):06}"

    async def _called(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        self.calls.append(method)
        fields = _structured(dict(await request.post()))
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token != (APP_TOKEN if method == "apps.connections.open" else self.token):
            return web.json_response({"ok": False, "error": "invalid_auth"})
        faults = self._faults[method]
        fault = faults.popleft() if faults else None
        if fault is not None and not fault.after:
            body = {"ok": False, "error": fault.error}
            return web.json_response(body, status=fault.status, headers=fault.headers)
        answer = self._carry_out(method, fields)
        if fault is not None:
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"ok": "error" not in answer, **answer})

    def _carry_out(  # noqa: PLR0911 - a table of methods
        self, method: str, fields: dict[str, Any]
    ) -> dict[str, Any]:
        match method:
            case "auth.test":
                return {"user_id": BOT, "bot_id": "B1", "team_id": "T1", "url": self.url}
            case "apps.connections.open":
                return {"url": f"ws://127.0.0.1:{self.port}/link?ticket=s3cret-ticket"}
            case "chat.postMessage":
                return self._post(fields)
            case "chat.update":
                if fields["ts"] not in {each.ts for each in self.sent}:
                    return {"error": "message_not_found"}
                self.edits.append(fields)
                return {"ts": fields["ts"]}
            case "conversations.history" | "conversations.replies":
                return self._history(fields)
            case "files.getUploadURLExternal":
                number = f"F{len(self.uploaded) + 1}"
                self.uploaded[number] = (fields["filename"], b"")
                return {"upload_url": f"{self.url}/upload/{number}", "file_id": number}
            case "files.completeUploadExternal":
                return self._share(fields)
            case _:
                return {"error": "unknown_method"}

    def _post(self, fields: dict[str, Any]) -> dict[str, Any]:
        sections = [each for each in fields.get("blocks", []) if each["type"] == "section"]
        if any(len(each["text"]["text"]) > 3000 for each in sections):
            return {"error": "invalid_blocks"}
        if not fields.get("text") and not sections:
            return {"error": "no_text"}
        sent = Sent(self.number(), fields["channel"], fields.get("thread_ts"), fields)
        self.sent.append(sent)
        return {"ts": sent.ts, "channel": sent.channel}

    def _share(self, fields: dict[str, Any]) -> dict[str, Any]:
        shared = [
            {"id": each["id"], "title": each["title"], "name": self.uploaded[each["id"]][0]}
            for each in fields["files"]
        ]
        sent = Sent(self.number(), fields["channel_id"], fields.get("thread_ts"), {}, shared)
        self.sent.append(sent)
        return {"files": shared}

    def _history(self, fields: dict[str, Any]) -> dict[str, Any]:
        here: list[dict[str, Any]] = [
            {"ts": each.ts, "text": each.text, "metadata": each.fields.get("metadata")}
            | ({"files": each.files} if each.files else {})
            for each in self.sent
            if (each.channel, each.thread) == (fields["channel"], fields.get("ts"))
        ]
        here = [each for each in here if float(each["ts"]) >= float(fields["oldest"])]
        if "ts" not in fields:
            here.reverse()  # a channel from its end, a thread from its beginning, as there
        begin = int(fields.get("cursor", 0))
        end = begin + min(int(fields["limit"]), 10)  # small pages, so that there are several
        more = {"next_cursor": str(end) if end < len(here) else ""}
        return {"messages": here[begin:end], "response_metadata": more}

    async def _upload(self, request: web.Request) -> web.Response:
        number = request.match_info["id"]
        self.uploaded[number] = (self.uploaded[number][0], await request.read())
        return web.Response(text="OK")

    async def _file(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=302, headers={"Location": "http://127.0.0.1:9/login"})
        name = request.match_info["name"]
        if name not in self.files:
            return web.Response(status=404)
        return web.Response(body=self.files[name])

    async def _converse(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.connections += 1
        self._sockets.append(socket)
        await socket.send_json({"type": "hello", "num_connections": 1})
        for envelope in list(self.unacknowledged.values()):
            await socket.send_json({**envelope, "retry_attempt": 1, "retry_reason": "timeout"})
        try:
            async for received in socket:
                if received.type is WSMsgType.TEXT:
                    self.unacknowledged.pop(json.loads(received.data).get("envelope_id"), None)
        finally:
            self._sockets.remove(socket)
        return socket

    async def _tell(self, envelope: dict[str, Any]) -> None:
        self.unacknowledged[envelope["envelope_id"]] = envelope
        for socket in self._sockets[-1:]:
            await socket.send_json(envelope)

    async def cut_off(self) -> None:
        for socket in list(self._sockets):
            await socket.close(code=1001)


_TEAM = {"team_id": "T1", "api_app_id": "A1"}


def _structured(form: dict[str, Any]) -> dict[str, Any]:
    plain = {"text", "initial_comment"}
    return {
        name: json.loads(value)
        if name not in plain and isinstance(value, str) and value[:1] in {"[", "{"}
        else value
        for name, value in form.items()
    }


async def _request(port: int, body: dict[str, Any], secret: str) -> tuple[int, str]:
    kind = "application/json"
    data = json.dumps(body)
    if body.get("type") == "block_actions":
        kind, data = "application/x-www-form-urlencoded", urllib.parse.urlencode({"payload": data})
    elif "command" in body:
        kind, data = "application/x-www-form-urlencoded", urllib.parse.urlencode(body)
    when = str(int(time.time()))
    signed = hmac.new(secret.encode(), f"v0:{when}:{data}".encode(), hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": kind,
        "X-Slack-Request-Timestamp": when,
        "X-Slack-Signature": f"v0={signed}",
    }
    address = f"http://127.0.0.1:{port}/slack/events"
    async with (
        aiohttp.ClientSession() as session,
        session.post(address, data=data, headers=headers) as response,
    ):
        return response.status, await response.text()
