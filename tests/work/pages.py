"""A server of web pages on this machine, good ones and bad ones, for what reads them.

A test gives it its pages: path → `Answer`, or a function that writes to the connection itself.
"""

import contextlib
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, BinaryIO, cast

from tests.http_server import serving


@dataclass(frozen=True, slots=True)
class Answer:
    """One page."""

    body: bytes = b""
    content_type: str | None = "text/html; charset=utf-8"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])


Writer = Callable[[BinaryIO, threading.Event], None]
"""Writes an answer by hand; the event is set when the server closes."""


@dataclass
class Pages:
    """The server while it runs."""

    port: int
    answers: dict[str, Answer | Writer] = field(default_factory=dict[str, Answer | Writer])
    asked: list[str] = field(default_factory=list[str])
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def host(self) -> str:
        """As `fetch(trusted=…)` names it."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        """The address of a page."""
        return f"http://{self.host}{path}"


class _Handler(BaseHTTPRequestHandler):
    running: Pages

    def do_GET(self) -> None:
        self.running.asked.append(self.path)
        answer = self.running.answers.get(self.path.partition("?")[0], Answer(b"", status=404))
        self.close_connection = True
        with contextlib.suppress(OSError):
            if not isinstance(answer, Answer):
                answer(cast("BinaryIO", self.wfile), self.running.closing)
                return
            self.send_response(answer.status, "\x1b[31mhostile")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.content_type is not None:
                self.send_header("Content-Type", answer.content_type)
            if "Content-Length" not in answer.headers:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Not on our terminal."""


@contextlib.contextmanager
def pages() -> Generator[Pages]:
    """A server on a free port of this machine."""

    class Handler(_Handler):
        """Knows its server."""

    with serving(Handler) as port:
        running = Handler.running = Pages(port)
        try:
            yield running
        finally:
            running.closing.set()
