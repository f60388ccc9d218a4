"""Webhooks as https://www.standardwebhooks.com has them: one signed POST, and what came back.

Everything that comes back is hostile: no redirect is followed, nothing of the body is read, and
the time is limited as a whole, not for each packet.
"""

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import secrets
import socket
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

from backburner.model.clock import rfc3339
from backburner.work import guarded_http, network
from backburner.work.channels.outcome import Delivered, Failed, Gone, Letter, Outcome, failed
from backburner.work.guarded_http import named

_PREFIX = "whsec_"
_KEY_BYTES = 32


def new_secret() -> str:
    """A key to sign with, as receivers' libraries take it."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of the header `webhook-signature`."""
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    text = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, text, hashlib.sha256)).decode()


def body_of(letter: Letter) -> bytes:
    """What is sent."""
    signal = letter.signal
    document = {
        "type": f"backburner.task.{signal.kind.value}",
        "timestamp": rfc3339(signal.created_at),
        "data": letter.data(),
    }
    return json.dumps(document, separators=(",", ":")).encode()


class Request:
    """One delivery, carried out in a thread; `abort` may come from another."""

    def __init__(
        self, address: str, secret: str, letter: Letter, *, limit_s: float, allow_private: bool
    ) -> None:
        self._parts = urlsplit(address)
        self._secret = secret
        self._letter = letter
        self._limit_s = limit_s
        self._allow_private = allow_private
        self._socket: socket.socket | None = None
        self._aborted = False

    def abort(self) -> None:
        """Wake the thread that waits for the other side."""
        self._aborted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def carry_out(self) -> Outcome:
        """Send it, and say what became of it. Never raises for what the other side does."""
        try:
            return self._exchange()
        except network.Refused as error:
            return failed(f"{error}; a channel added with --allow-private may go there")
        except guarded_http.PROBLEMS as error:  # ValueError: also a key that is none
            host = self._parts.hostname or ""
            return failed(guarded_http.in_words(error, host, self._limit_s))

    def _exchange(self) -> Outcome:
        body = body_of(self._letter)
        connection = self._connect(time.monotonic() + self._limit_s)
        try:
            path = self._parts.path or "/"
            query = f"?{self._parts.query}" if self._parts.query else ""
            connection.request("POST", path + query, body, self._headers(body))
            response = connection.getresponse()
            if self._aborted:  # what came may be half of something
                raise TimeoutError
            return _judge(response.status, response.getheader("Retry-After"))
        finally:
            connection.close()

    def _connect(self, deadline: float) -> http.client.HTTPConnection:
        return guarded_http.connect(
            self._parts,
            deadline=deadline,
            allow_private=self._allow_private,
            opened=self._opened,
        )

    def _opened(self, connection: socket.socket) -> None:
        self._socket = connection
        if self._aborted:
            raise TimeoutError

    def _headers(self, body: bytes) -> dict[str, str]:
        now = int(time.time())
        message_id = self._letter.signal.key
        return {
            "Host": guarded_http.host_header(self._parts),
            "Content-Type": "application/json",
            "User-Agent": guarded_http.USER_AGENT,
            "Connection": "close",
            "webhook-id": message_id,
            "webhook-timestamp": str(now),
            "webhook-signature": sign(self._secret, message_id, now, body),
        }


def _judge(status: int, retry_after: str | None) -> Outcome:
    if 200 <= status < 300:  # noqa: PLR2004 - HTTP's own numbers
        return Delivered()
    if status == HTTPStatus.GONE:
        return Gone("the receiver answered 410 Gone: it wants nothing more")
    if 300 <= status < 400:  # noqa: PLR2004
        return failed(f"it answered {named(status)}; redirects are not followed")
    return Failed(f"it answered {named(status)}", _seconds(retry_after))


def _seconds(retry_after: str | None) -> float | None:
    """Seconds or a date, as the header allows."""
    if not retry_after:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
