"""A chat server for tests: people write, posts are kept and counted, as a real platform does.

It speaks lines of JSON over a unix socket. What it tells a gateway of is told again until it is
acknowledged; a post whose key it knows is not made twice, where it remembers keys. It can be told
to be busy, to refuse, and to hang up.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.waiting import wait_until_async

LINE_LIMIT = 64 * 1024 * 1024


@dataclass
class Posted:
    """One message in a chat, as it is now."""

    id: str
    key: str
    chat: str
    thread: str | None
    text: str
    buttons: dict[str, str]
    file: dict[str, Any] | None = None
    edits: int = 0


@dataclass
class ChatServer:
    """The server while it runs."""

    path: str
    remembers_keys: bool = True
    posts: list[Posted] = field(default_factory=list[Posted])
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Everything that was asked of it, also what it did not do."""
    troubles: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """By chat, what it answers in the place of posting."""
    menu: list[list[str]] = field(default_factory=list[list[str]])
    takes: Callable[[dict[str, Any]], bool] | None = None
    """What it takes at all; None for everything."""
    after_post: Callable[[Posted], None] | None = None
    """Called before the answer to a post goes out."""
    _unheard: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    connections: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    _listeners: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    # People

    def write(self, text: str, *, chat: str = "c1", thread: str | None = None,
              person: str = "ada", key: str | None = None,
              files: list[dict[str, str]] | None = None) -> str:  # fmt: skip
        """Somebody writes a message. Answers its key."""
        key = key or f"k{next(self._numbers)}"
        heard = {"key": key, "chat": chat, "thread": thread, "person": person, "text": text}
        self._tell({**heard, "files": files or []})
        return key

    def press(self, post: Posted, label: str, *, person: str = "ada") -> None:
        """Somebody presses a button."""
        key = f"k{next(self._numbers)}"
        heard = {"key": key, "chat": post.chat, "thread": post.thread, "person": person}
        self._tell({**heard, "action": post.buttons[label], "post": post.id})

    def repeat(self, key: str, text: str, **where: Any) -> None:
        """Tell of the same message again, as platforms do."""
        self.write(text, key=key, **where)

    def _tell(self, heard: dict[str, Any]) -> None:
        name = f"{heard['chat']} {heard['key']}"
        self._unheard[name] = {"name": name, **heard}
        for listener in self._listeners:
            listener.write(_line(self._unheard[name]))

    @property
    def heard_all(self) -> bool:
        """Whether everything was acknowledged."""
        return not self._unheard

    @property
    def connected(self) -> bool:
        """Whether a gateway listens."""
        return bool(self._listeners)

    # Looking

    def texts(self, chat: str = "c1", thread: str | None = None) -> list[str]:
        """What stands in a chat."""
        return [each.text for each in self.posts if (each.chat, each.thread) == (chat, thread)]

    async def shows(self, *parts: str, chat: str = "c1", thread: str | None = None,
                    timeout: float = 30) -> Posted:  # fmt: skip
        """Wait for a post that has all of this in it."""

        def found() -> Posted | None:
            for each in self.posts:
                here = (each.chat, each.thread) == (chat, thread)
                if here and all(part in each.text for part in parts):
                    return each
            return None

        return await wait_until_async(
            found, timeout, message=lambda: f"{parts} not in {self.texts(chat, thread)}"
        )

    def count(self, *parts: str) -> int:
        """Posts that have all of this in them."""
        return sum(all(part in each.text for part in parts) for each in self.posts)

    # The wire

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            async for line in reader:
                request = json.loads(line)
                self.requests.append(request)
                answer = self._answer(request, writer)
                if answer is not None:
                    writer.write(_line(answer))
                    await writer.drain()
        if writer in self._listeners:
            self._listeners.remove(writer)
        self.connections.discard(writer)
        writer.close()

    def hang_up(self) -> None:
        """Close every connection."""
        for writer in self.connections:
            writer.close()

    def _answer(
        self, request: dict[str, Any], writer: asyncio.StreamWriter
    ) -> dict[str, Any] | None:
        match request["do"]:
            case "listen":
                self.menu = request["menu"]
                self._listeners.append(writer)
                for heard in self._unheard.values():
                    writer.write(_line(heard))
                return None
            case "heard":
                self._unheard.pop(request["name"], None)
                return None
            case "post":
                return self._post(request)
            case _:
                return self._edit(request)

    def _post(self, request: dict[str, Any]) -> dict[str, Any]:
        if (trouble := self.troubles.get(request["chat"])) is not None:
            return trouble
        if self.takes is not None and not self.takes(request):
            return {"refused": "this is never taken"}
        known = [each for each in self.posts if each.key == request["key"]]
        if known and self.remembers_keys:
            return {"id": known[0].id}
        post = Posted(
            f"p{next(self._numbers)}", request["key"], request["chat"], request["thread"],
            request["text"], dict(request["buttons"]), request["file"],
        )  # fmt: skip
        self.posts.append(post)
        if self.after_post is not None:
            self.after_post(post)
        return {"id": post.id}

    def _edit(self, request: dict[str, Any]) -> dict[str, Any]:
        if (trouble := self.troubles.get(request["chat"])) is not None:
            return trouble
        for post in self.posts:
            if post.id == request["id"]:
                post.text, post.buttons = request["text"], dict(request["buttons"])
                post.edits += 1
                return {"id": post.id}
        return {"refused": "there is no such post"}


@contextlib.asynccontextmanager
async def chat_server(folder: Path) -> AsyncGenerator[ChatServer]:
    """A server on a socket of this folder."""
    served = ChatServer(str(folder / "chat.sock"))
    server = await asyncio.start_unix_server(served.serve, served.path, limit=LINE_LIMIT)
    try:
        yield served
    finally:
        server.close()
        served.hang_up()
        await wait_until_async(lambda: not served.connections)


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"
