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
import ssl
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

import backburner
from backburner.model.clock import rfc3339
from backburner.work import network
from backburner.work.channels.outcome import Delivered, Failed, Gone, Letter, Outcome, failed

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
        except socket.gaierror as error:
            return failed(f"the name {self._parts.hostname} was not found: {error.strerror}")
        except TimeoutError:
            return failed(f"no answer within {self._limit_s:g} s")
        except ssl.SSLError as error:
            return failed(f"no safe connection: {error.reason or error}")
        except http.client.HTTPException as error:
            return failed(f"the answer was no HTTP: {type(error).__name__}")
        except OSError as error:
            return failed(f"no connection: {error.strerror or error}")
        except ValueError as error:  # a name that cannot be one, a key that is none
            return failed(f"it cannot be sent: {error}")

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
        host = self._parts.hostname or ""
        safe = self._parts.scheme == "https"
        port = self._parts.port or (443 if safe else 80)
        raw = network.connect(host, port, deadline=deadline, allow_private=self._allow_private)
        self._socket = raw
        if self._aborted:
            raise TimeoutError
        raw.settimeout(max(0.01, deadline - time.monotonic()))
        if safe:
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
            self._socket = raw
        connection = http.client.HTTPConnection(host, port)
        connection.sock = raw  # it would look the name up again
        return connection

    def _headers(self, body: bytes) -> dict[str, str]:
        now = int(time.time())
        message_id = self._letter.signal.key
        default = 443 if self._parts.scheme == "https" else 80
        host = self._parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        return {
            "Host": host if self._parts.port in (None, default) else f"{host}:{self._parts.port}",
            "Content-Type": "application/json",
            "User-Agent": f"backburner/{backburner.__version__}",
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
        return failed(f"it answered {_named(status)}; redirects are not followed")
    return Failed(f"it answered {_named(status)}", _seconds(retry_after))


def _named(status: int) -> str:
    """With our words: the other side's may be anything."""
    with contextlib.suppress(ValueError):
        return f"{status} {HTTPStatus(status).phrase}"
    return str(status)


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
