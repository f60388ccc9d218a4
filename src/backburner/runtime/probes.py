"""The doors of a worker for probes and Prometheus: /healthz, /readyz and /metrics over plain HTTP.

They tell numbers and no names of tasks, and take nothing; there are no tokens. What is sent is
read up to a bound, for a bounded time, from a bounded number of connections.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import TYPE_CHECKING

from backburner.model.errors import UsageError
from backburner.model.values import value

if TYPE_CHECKING:
    from backburner.runtime.vitals import Vitals

_HEAD_BYTES = 8 * 1024
_PATIENCE_S = 5.0
_AT_ONCE = 64
_TEXT = "text/plain; charset=utf-8"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"


@value
class Door:
    """Where it listens."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> "Door":
        """`HOST:PORT`, or a port of this machine alone; UsageError where it is neither."""
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if not port.isascii() or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004 - ports
            raise UsageError(
                f"{text!r} is nowhere to listen", remedy="give a port, as 9464, or 0.0.0.0:9464"
            )
        return cls(host, int(port))


@contextlib.asynccontextmanager
async def listening(door: Door, vitals: "Vitals") -> AsyncGenerator[str]:
    """Answer while the block lasts; gives the address."""
    probes = _Probes(vitals)
    try:
        server = await asyncio.start_server(probes.answer, door.host, door.port, limit=_HEAD_BYTES)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"{door.host}:{door.port} cannot be listened at: {error}",
            remedy="choose another --listen, or port 0 for any that is free",
        ) from None
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        server.close()
        await probes.close()
        await vitals.close()


class _Probes:
    def __init__(self, vitals: "Vitals") -> None:
        self._vitals = vitals
        self._open: set[asyncio.Task[None]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            if len(self._open) < _AT_ONCE:
                self._open.add(task)
                async with asyncio.timeout(_PATIENCE_S):
                    await self._answer(reader, writer)
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            pass  # it asks nothing, or asks too much
        finally:
            self._open.discard(task)
            writer.close()

    async def close(self) -> None:
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return
        method, path, *_ = [*head.split(b"\r\n", 1)[0].decode("latin-1").split(" "), "", ""]
        status, kind, body = await self._told(method, path.partition("?")[0])
        lines = (
            f"HTTP/1.1 {status.value} {status.phrase}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            "Connection: close",
            "X-Content-Type-Options: nosniff",
        )
        writer.write("\r\n".join((*lines, "", "")).encode())
        if method != "HEAD":
            writer.write(body)
        await writer.drain()

    async def _told(self, method: str, path: str) -> tuple[HTTPStatus, str, bytes]:
        if method not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, _TEXT, b"GET or HEAD\n"
        match path:
            case "/healthz":
                return HTTPStatus.OK, _TEXT, b"ok\n"
            case "/readyz":
                reason = await self._vitals.why_not_ready()
                if reason is None:
                    return HTTPStatus.OK, _TEXT, b"ready\n"
                return HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, f"not ready: {reason}\n".encode()
            case "/metrics":
                return HTTPStatus.OK, _METRICS, await self._vitals.exposition()
            case _:
                return HTTPStatus.NOT_FOUND, _TEXT, b"/healthz, /readyz, /metrics\n"
