"""Whether an address answers over HTTP with a status of 2xx or 3xx. Redirects are not followed.

Without a thread and without a library: a status line is all that is read, and no more than 8 KiB
of it, however much the other side sends.
"""

import asyncio
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from backburner.work.probe.probe import NOT_YET, Answer, Polled

if TYPE_CHECKING:
    import ssl

_ANSWER_S = 5.0
_LINE_MAX = 8 * 1024
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? ([1-5]\d\d)(?: .*)?\r?\n")
_GOOD = range(200, 400)


class HttpProbe(Polled):
    """Asks one address."""

    def __init__(self, address: str) -> None:
        self._address = address
        parts = urlsplit(address)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._request = (
            f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: backburner\r\n"
            "Accept: */*\r\nConnection: close\r\n\r\n"
        ).encode("ascii")

    async def look(self) -> Answer:
        """Whether it answers well."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                status = await self._ask()
        except (OSError, TimeoutError, ValueError, EOFError):  # EOFError: half a line
            return NOT_YET
        if status not in _GOOD:
            return NOT_YET
        return Answer(ready=True, text=f"{self._address} answered {status}")

    async def _ask(self) -> int | None:
        reader, writer = await asyncio.open_connection(
            self._host, self._port, ssl=_unchecked() if self._secure else None, limit=_LINE_MAX
        )
        try:
            writer.write(self._request)
            line = _STATUS.fullmatch(await reader.readline())
        finally:
            writer.transport.abort()
        return int(line[1]) if line else None


def _unchecked() -> "ssl.SSLContext":
    """Servers under development have certificates of their own making; nothing secret is sent."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
