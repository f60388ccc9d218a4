"""A receiver of webhooks: a real HTTP server that answers as it is told, and remembers what came.

The path says what it does: /ok, /status/503, /later (503 and Retry-After: 7), /gone, /redirect,
/slow (an answer that never comes), /drip (one that never ends), /huge, /garbage, /silent (hangs
up), /headers (more of them than anybody needs).
"""

import contextlib
import socket
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from standardwebhooks import Webhook

from tests.http_server import serving
from tests.waiting import wait_until

LATER_S = 700
_STEP_S = 0.05


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    def verified(self, secret: str) -> Any:
        """The document, checked by the library that receivers use; an error if it is forged."""
        return Webhook(secret).verify(self.body, self.headers)

    @property
    def key(self) -> str:
        """The same for every repetition."""
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """The server while it runs."""

    port: int
    received: list[Received] = field(default_factory=list[Received])
    answer: int | None = None
    """A status for every path, in the place of what the path says."""
    closing: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/ok") -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}{path}"

    def wait_for(self, count: int) -> list[Received]:
        """What came, once there is so much of it."""
        wait_until(lambda: len(self.received) >= count, message=lambda: f"only {self.received}")
        return self.received


class _Handler(BaseHTTPRequestHandler):
    """Answers by the first word of the path."""

    running: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.running.answer  # before it is seen to have come: then a test changes that
        self.running.received.append(Received(self.path, headers, body))
        name, _, rest = self.path.partition("?")[0].strip("/").partition("/")
        with contextlib.suppress(OSError):
            if answer is not None:
                self._say(answer)
            elif name == "status":
                self._say(int(rest))
            else:
                getattr(self, f"_{name}")()
        self.close_connection = True

    def _say(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status, "\x1b[31mhostile")
        for header, value in (headers or {}).items():
            self.send_header(header, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _ok(self) -> None:
        self._say(200)

    def _later(self) -> None:
        self._say(503, {"Retry-After": str(LATER_S)})

    def _gone(self) -> None:
        self._say(410)

    def _redirect(self) -> None:
        self._say(302, {"Location": self.running.url("/ok")})

    def _slow(self) -> None:
        self.running.closing.wait()

    def _drip(self) -> None:
        """A byte now and then keeps any time-out for one read from ever running out."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not self.running.closing.wait(_STEP_S):
            self.wfile.write(b"x")

    def _huge(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        while not self.running.closing.is_set():
            self.wfile.write(b"x" * 1_000_000)

    def _garbage(self) -> None:
        self.wfile.write(b"\x00\xff\x1b[31mnot HTTP at all\r\n\r\n")

    def _headers(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-More: and more\r\n" * 10_000)

    def _silent(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Not on our terminal."""


@contextlib.contextmanager
def receiver() -> Generator[Receiver]:
    """A server on a free port of this machine."""

    class Handler(_Handler):
        """Knows its server."""

    with serving(Handler) as port:
        running = Handler.running = Receiver(port)
        try:
            yield running
        finally:
            running.closing.set()
