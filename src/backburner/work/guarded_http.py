"""HTTP to addresses that somebody else has chosen: what webhooks and fetched pages share.

The address that was checked is the one that is connected to (`work.network`), and what goes wrong
is said in words that show nothing of the other side's.
"""

import contextlib
import http.client
import socket
import ssl
import time
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import SplitResult

import backburner
from backburner.work import network

PORTS = {"http": 80, "https": 443}
USER_AGENT = f"backburner/{backburner.__version__}"

Problem = OSError | http.client.HTTPException | ValueError
"""What connecting and talking raise. ValueError: a name that cannot be one."""
PROBLEMS = (OSError, http.client.HTTPException, ValueError)


def connect(
    parts: SplitResult,
    *,
    deadline: float,
    allow_private: bool,
    opened: Callable[[socket.socket], None],
) -> http.client.HTTPConnection:
    """A connection to the host of an address, over TLS where it says so.

    ``opened`` is given each socket, so that somebody else can hang up; it may raise.
    """
    host = plain_host(parts)
    port = parts.port or PORTS[parts.scheme]
    raw = network.connect(host, port, deadline=deadline, allow_private=allow_private)
    try:
        opened(raw)
        raw.settimeout(max(0.01, deadline - time.monotonic()))
        if parts.scheme == "https":
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
            opened(raw)
    except BaseException:
        raw.close()
        raise
    connection = http.client.HTTPConnection(host, port)
    connection.sock = raw  # it would look the name up again
    return connection


def plain_host(parts: SplitResult) -> str:
    """In ASCII, as the name is looked up and said in headers. ValueError where it cannot be one."""
    host = parts.hostname or ""
    return host if host.isascii() else host.encode("idna").decode()


def host_header(parts: SplitResult) -> str:
    """The value of the header `Host`."""
    host = plain_host(parts)
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, PORTS[parts.scheme]) else f"{host}:{parts.port}"


def named(status: int) -> str:
    """With our words: the other side's may be anything."""
    with contextlib.suppress(ValueError):
        return f"{status} {HTTPStatus(status).phrase}"
    return str(status)


def in_words(problem: Problem, host: str, limit_s: float) -> str:
    """Why there was no answer."""
    if isinstance(problem, socket.gaierror):
        return f"the name {host} was not found: {problem.strerror}"
    if isinstance(problem, TimeoutError):
        return f"no answer within {limit_s:g} s"
    if isinstance(problem, ssl.SSLError):
        return f"no safe connection: {problem.reason or problem}"
    if isinstance(problem, http.client.HTTPException):
        return f"the answer was no HTTP: {type(problem).__name__}"
    if isinstance(problem, OSError):
        return f"no connection: {problem.strerror or problem}"
    return f"it cannot be sent: {problem}"
