"""A server that speaks the Bot API of Telegram over HTTP: long polling, posts, files, faults.

It keeps an update until it is confirmed by a later offset, and takes the same post twice, as the
real one does. What it was asked is kept; what it answers can be spoiled once, or for a chat.
"""

import asyncio
import json
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.gateway.wire import Wire

TOKEN = "123456789:AAtelegram-s3cret_token-of-a-bot"
BOT_ID = 123456789
BOT_NAME = "our_bot"
ADA = 1001
"""A person; their private chat has the same number."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer in the place of the right one."""

    status: int
    description: str = "fault"
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    after: bool = False
    """Carried out, and then the connection is cut without an answer."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A post that the bot made."""

    id: int
    method: str
    fields: dict[str, Any]
    files: dict[str, tuple[str, bytes]]

    @property
    def chat(self) -> int:
        """Where it is."""
        return int(self.fields["chat_id"])

    @property
    def text(self) -> str:
        """What it says."""
        return self.fields.get("text", self.fields.get("caption", ""))

    @property
    def buttons(self) -> dict[str, str]:
        """Labels and actions."""
        return buttons_of(self.fields)


def buttons_of(fields: dict[str, Any]) -> dict[str, str]:
    """Labels and actions of a post, or of a change of one."""
    rows = fields.get("reply_markup", {}).get("inline_keyboard", [])
    return {each["text"]: each["callback_data"] for row in rows for each in row}


class TelegramServer(Wire):
    """The server while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Sent] = []
        self.edits: list[dict[str, Any]] = []
        self.answered: list[str] = []
        self.commands: list[dict[str, str]] = []
        self.polls = 0
        self.blocked: set[int] = set()
        self.token = TOKEN
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._updates: list[dict[str, Any]] = []
        self._next_update = 1
        self._next_message = 1
        self._news = asyncio.Condition()
        self._poller: asyncio.Future[None] | None = None

    def application(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/bot{token}/{method}", self._called)
        app.router.add_get("/file/bot{token}/{path:.+}", self._file)
        return app

    # ------------------------------------------------------------------------------ the people

    def says(
        self,
        text: str = "",
        *,
        user: int = ADA,
        chat: int | None = None,
        thread: int | None = None,
        bot: bool = False,
        **more: Any,
    ) -> int:
        """Somebody writes; the id of their message."""
        number = self._number()
        where = user if chat is None else chat
        message: dict[str, Any] = {
            "message_id": number,
            "date": int(time.time()),
            "chat": {
                "id": where,
                "type": "private" if where > 0 else "supergroup",
                "title": "a chat",
            },
            "from": {"id": user, "is_bot": bot, "first_name": "Ada", "last_name": "L"},
            **({"text": text} if text else {}),
            **({"message_thread_id": thread, "is_topic_message": True} if thread else {}),
            **more,
        }
        self.do(self._tell({"message": message}))
        return number

    def presses(self, post: Sent, action: str, *, user: int = ADA) -> None:
        """Somebody presses a button of a post."""
        thread = post.fields.get("message_thread_id")
        query = {
            "id": f"query{self._number()}",
            "from": {"id": user, "is_bot": False, "first_name": "Ada"},
            "chat_instance": "1",
            "data": action,
            "message": {
                "message_id": post.id,
                "date": int(time.time()),
                "chat": {"id": post.chat, "type": "private" if post.chat > 0 else "supergroup"},
                "text": post.text,
                **({"message_thread_id": int(thread), "is_topic_message": True} if thread else {}),
            },
        }
        self.do(self._tell({"callback_query": query}))

    def tells(self, update: dict[str, Any]) -> None:
        """Any update."""
        self.do(self._tell(update))

    def spoil(self, method: str, *faults: Fault) -> None:
        """Answer the next calls of a method with these."""
        self._faults[method].extend(faults)

    @property
    def unconfirmed(self) -> int:
        """How many updates the bot has not confirmed."""
        return len(self._updates)

    # --------------------------------------------------------------------------------- the bot

    async def _called(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.match_info["token"] != self.token:
            return _error(401, "Unauthorized")
        fields, files = await _read(request)
        faults = self._faults[method]
        fault = faults.popleft() if faults else None
        if fault is not None and not fault.after:
            return _error(fault.status, fault.description, fault.parameters)
        if "chat_id" in fields and int(fields["chat_id"]) in self.blocked:
            return _error(403, "Forbidden: bot was blocked by the user")
        answer = await self._carry_out(method, fields, files)
        if fault is not None:
            assert request.transport is not None
            request.transport.close()
        if isinstance(answer, web.Response):
            return answer
        return web.json_response({"ok": True, "result": answer})

    async def _carry_out(  # noqa: PLR0911 - a table of methods
        self, method: str, fields: dict[str, Any], files: dict[str, tuple[str, bytes]]
    ) -> Any:
        match method:
            case "getMe":
                return {
                    "id": BOT_ID,
                    "is_bot": True,
                    "first_name": "Ours",
                    "username": BOT_NAME,
                }
            case "getUpdates":
                return await self._polled(fields)
            case "sendMessage" | "sendPhoto" | "sendDocument":
                return self._posted(method, fields, files)
            case "editMessageText" | "editMessageCaption":
                last = next((e for e in reversed(self.edits) if _same_post(e, fields)), None)
                if last == fields:
                    return _error(400, "Bad Request: message is not modified: it is the same")
                self.edits.append(fields)
                return True
            case "answerCallbackQuery":
                self.answered.append(fields["callback_query_id"])
                return True
            case "setMyCommands":
                self.commands = fields["commands"]
                return True
            case "deleteWebhook":
                return True
            case "getFile":
                path = f"documents/{fields['file_id']}"
                return {"file_id": fields["file_id"], "file_unique_id": "u", "file_path": path}
            case _:
                return _error(404, "Not Found: method not found")

    def _posted(
        self, method: str, fields: dict[str, Any], files: dict[str, tuple[str, bytes]]
    ) -> Any:
        text = fields.get("text", fields.get("caption", ""))
        most = 4096 if method == "sendMessage" else 1024
        if len(text.encode("utf-16-le")) // 2 > most:
            return _error(400, "Bad Request: message is too long")
        if method == "sendMessage" and not text.strip():
            return _error(400, "Bad Request: message text is empty")
        sent = Sent(self._number(), method, fields, files)
        self.sent.append(sent)
        chat = {"id": sent.chat, "type": "private" if sent.chat > 0 else "supergroup"}
        return {"message_id": sent.id, "date": int(time.time()), "chat": chat, "text": text}

    async def _polled(self, fields: dict[str, Any]) -> Any:
        if self._poller is not None and not self._poller.done():
            self._poller.set_result(None)  # the newer one wins, as there
        ousted = self._poller = asyncio.get_running_loop().create_future()
        self.polls += 1
        offset = int(fields.get("offset", 0))
        self._updates = [each for each in self._updates if each["update_id"] >= offset]
        deadline = time.monotonic() + int(fields.get("timeout", 0))
        async with self._news:
            while not self._updates and not ousted.done():
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                try:
                    await asyncio.wait_for(self._news.wait(), min(left, 0.1))
                except TimeoutError:
                    continue
        if ousted.done():
            return _error(409, "Conflict: terminated by other getUpdates request")
        return self._updates[: int(fields.get("limit", 100))]

    async def _file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["path"].removeprefix("documents/")
        if request.match_info["token"] != self.token:
            return web.Response(status=401)
        if name in self.redirects:
            return web.Response(status=302, headers={"Location": self.redirects[name]})
        if name not in self.files:
            return web.Response(status=404)
        return web.Response(body=self.files[name])

    async def _tell(self, update: dict[str, Any]) -> None:
        async with self._news:
            self._updates.append({"update_id": self._next_update, **update})
            self._next_update += 1
            self._news.notify_all()

    def _number(self) -> int:
        self._next_message += 1
        return self._next_message


def _same_post(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return (one["chat_id"], one["message_id"]) == (other["chat_id"], other["message_id"])


async def _read(request: web.Request) -> tuple[dict[str, Any], dict[str, tuple[str, bytes]]]:
    fields: dict[str, Any] = {}
    files: dict[str, tuple[str, bytes]] = {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            files[name] = (value.filename, value.file.read())
        elif isinstance(value, str):
            structured = name not in {"text", "caption"} and value[:1] in {"[", "{"}
            fields[name] = json.loads(value) if structured else value
    return fields, files


def _error(status: int, description: str, parameters: dict[str, Any] | None = None) -> web.Response:
    body: dict[str, Any] = {"ok": False, "error_code": status, "description": description}
    if parameters:
        body["parameters"] = parameters
    return web.json_response(body, status=status)
