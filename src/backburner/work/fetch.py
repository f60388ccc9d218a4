"""Reading a page of the web whose address is somebody else's, and nothing nearer than the web.

Every step of a redirect is checked like the first, and what was checked is what is connected to
(`work.network`). Time is limited as a whole: a server that sends a byte now and then does not hold
the caller. Nothing of ours is sent along: no cookies, no passwords, no proxy.
"""

import contextlib
import http.client
import socket
import threading
import time
import zlib
from collections.abc import Callable, Collection, Generator
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from backburner.model.values import value
from backburner.work import guarded_http, network

REDIRECTS_MAX = 5
ADDRESS_MAX_CHARS = 4096

_PIECE = 64 * 1024
_MOVED = frozenset({301, 302, 303, 307, 308})
_HOST_MAX_CHARS = 200


class FetchFailed(Exception):
    """There is no page; the text says why, in words for a model."""


@value
class Page:
    """What came back."""

    address: str
    """Where it was in the end."""
    status: int
    content_type: str
    charset: str | None
    body: bytes
    complete: bool
    """Whether there was no more of it than was wanted."""

    @property
    def status_text(self) -> str:
        """For people."""
        return guarded_http.named(self.status)


def fetch(
    address: str,
    *,
    limit_s: float,
    most_bytes: int,
    accept: str = "*/*",
    trusted: Collection[str] = (),
) -> Page:
    """Get what is at ``address``, following redirects. FetchFailed.

    ``trusted``: hosts, as `name:port`, that may be private, because they are the operator's choice.
    """
    deadline = time.monotonic() + limit_s
    for _ in range(REDIRECTS_MAX + 1):
        parts = _checked(address)
        host = ascii(parts.hostname)[1:-1][:_HOST_MAX_CHARS]
        try:
            found = _get(parts, deadline, most_bytes, accept, trusted)
        except network.Refused:  # its text tells what the name leads to
            raise FetchFailed(
                f"{host} is an address of this machine or of its network, and not on the web"
            ) from None
        except zlib.error:
            raise FetchFailed("the answer is compressed, and damaged") from None
        except guarded_http.PROBLEMS as error:
            problem = TimeoutError() if time.monotonic() >= deadline else error
            raise FetchFailed(guarded_http.in_words(problem, host, limit_s)) from None
        if isinstance(found, Page):
            return found
        address = urljoin(address, found)
    raise FetchFailed(f"it was redirected more than {REDIRECTS_MAX} times")


def host_and_port(parts: SplitResult) -> str:
    """As `trusted` names it."""
    return f"{parts.hostname}:{parts.port or guarded_http.PORTS.get(parts.scheme)}"


def _checked(address: str) -> SplitResult:
    try:
        parts = urlsplit(address.strip())
        usable = parts.hostname and parts.port != 0
    except ValueError:
        raise FetchFailed("that is no address") from None
    if parts.scheme not in guarded_http.PORTS or not usable or len(address) > ADDRESS_MAX_CHARS:
        raise FetchFailed("the address has to begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise FetchFailed("an address with a user name or a password is not fetched")
    return parts


def _get(
    parts: SplitResult, deadline: float, most: int, accept: str, trusted: Collection[str]
) -> Page | str:
    """The page, or the address that it has moved to."""
    with _hanging_up(deadline) as hold:
        connection = guarded_http.connect(
            parts, deadline=deadline, allow_private=host_and_port(parts) in trusted, opened=hold
        )
        with contextlib.closing(connection):
            connection.request("GET", _target(parts), headers=_headers(parts, accept))
            with contextlib.closing(connection.getresponse()) as response:
                moved = response.getheader("Location")
                if response.status in _MOVED and moved:
                    return moved[:ADDRESS_MAX_CHARS]
                body, complete = _body(response, most)
            if time.monotonic() >= deadline:  # it was cut off, which looks like an end
                raise TimeoutError
            headers = response.headers
            kind = headers.get_content_type() if "Content-Type" in headers else ""
            charset = headers.get_content_charset()
            return Page(parts.geturl(), response.status, kind, charset, body, complete)


def _target(parts: SplitResult) -> str:
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]")
    return f"{path}?{query}" if query else path


def _headers(parts: SplitResult, accept: str) -> dict[str, str]:
    return {
        "Host": guarded_http.host_header(parts),
        "User-Agent": guarded_http.USER_AGENT,
        "Accept": accept,
        "Accept-Encoding": "identity",
        "Connection": "close",
    }


def _body(response: http.client.HTTPResponse, most: int) -> tuple[bytes, bool]:
    """At most so much, and whether that is all. Compressed all the same: never more than that."""
    encoding = (response.getheader("Content-Encoding") or "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise FetchFailed("the answer is compressed in a way that was not asked for")
    unpack = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    body = bytearray()
    while len(body) <= most and (piece := response.read(_PIECE)):
        body += piece if unpack is None else unpack.decompress(piece, most + 1 - len(body))
    # Of a body whose length was told something may be missing; the others end by hanging up.
    return bytes(body[:most]), len(body) <= most and not response.length


@contextlib.contextmanager
def _hanging_up(deadline: float) -> Generator[Callable[[socket.socket], None]]:
    """Hang up at the deadline, whatever the other side does: a time-out is for each packet."""
    held: list[socket.socket] = []

    def hang_up() -> None:
        for connection in held[-1:]:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield held.append
    finally:
        timer.cancel()
