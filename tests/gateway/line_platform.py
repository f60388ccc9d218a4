"""The adapter of the chat server for tests. As a real one, it translates and decides nothing."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from backburner.gateway.platform import (
    Heard,
    Later,
    Limits,
    MenuEntry,
    Message,
    Person,
    Place,
    Post,
    Press,
    Refused,
    Upload,
)
from tests.gateway.chat_server import LINE_LIMIT


class LinePlatform:
    """See `backburner.gateway.platform.Platform`."""

    def __init__(self, path: str, *, text: int = 2000) -> None:
        self._path = path
        self._limits = Limits(text, len, enclosure_bytes=100_000)

    @property
    def name(self) -> str:
        return "line"

    @property
    def limits(self) -> Limits:
        return self._limits

    async def listen(
        self, hear: Callable[[Heard], Awaitable[None]], menu: Sequence[MenuEntry]
    ) -> None:
        reader, writer = await asyncio.open_unix_connection(self._path, limit=LINE_LIMIT)
        try:
            entries = [[each.name, each.summary, each.takes] for each in menu]
            writer.write(_line({"do": "listen", "menu": entries}))
            async for line in reader:
                told = json.loads(line)
                await hear(_heard(told))
                writer.write(_line({"do": "heard", "name": told["name"]}))
        finally:
            writer.close()

    async def post(self, place: Place, post: Post) -> str:
        file = post.enclosure
        said = {
            "do": "post",
            "key": post.key,
            "file": None
            if file is None
            else {"name": file.name, "type": file.media_type, "size": len(file.data)},
        }
        return await self._ask({**said, **_content(place, post)})

    async def edit(self, place: Place, post_id: str, post: Post) -> None:
        await self._ask({"do": "edit", "id": post_id, **_content(place, post)})

    async def _ask(self, request: dict[str, Any]) -> str:
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=LINE_LIMIT)
        except OSError:
            raise Later("the server cannot be reached") from None
        try:
            writer.write(_line(request))
            line = await reader.readline()
        finally:
            writer.close()
        if not line:
            raise Later("the server hung up")
        answer = json.loads(line)
        if "refused" in answer:
            raise Refused(answer["refused"])
        if "later" in answer:
            raise Later("busy", answer["later"])
        return answer["id"]


def _content(place: Place, post: Post) -> dict[str, Any]:
    buttons = [[each.label, each.action] for each in post.buttons]
    return {"chat": place.chat, "thread": place.thread, "text": post.text, "buttons": buttons}


def _heard(told: dict[str, Any]) -> Heard:
    place = Place(told["chat"], told["thread"])
    person = Person(told["person"], told["person"].title())
    if "action" in told:
        return Press(told["key"], place, person, told["action"], told["post"])
    uploads = tuple(_upload(each) for each in told["files"])
    return Message(told["key"], place, person, told["text"], uploads)


def _upload(told: dict[str, str]) -> Upload:
    data = base64.b64decode(told["data"])

    async def fetch(most: int) -> bytes:
        if len(data) > most:
            raise Refused("too large")
        return data

    return Upload(told["name"], told["type"], None, fetch)


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"
