"""X4: an address is ready when it answers 2xx or 3xx, whatever else it does to us."""

import contextlib
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from backburner.work.probe import http as module
from backburner.work.probe.http import HttpProbe

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@contextlib.contextmanager
def serving(
    answer: bytes, *, context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> Generator[tuple[int, list[bytes]]]:
    """A server that says the same to everyone; its port, and what it was asked."""
    asked: list[bytes] = []
    connections: list[socket.socket] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                request = b""
                while not request.endswith(b"\r\n\r\n"):
                    request += self.request.recv(1) or b"\r\n\r\n"
                asked.append(request)
                self.request.sendall(answer)
                self.request.recv(1)  # until the other side has had enough

    class Server(socketserver.ThreadingTCPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def get_request(self) -> tuple[socket.socket, object]:
            connection, address = super().get_request()
            connection.settimeout(30)
            if context is not None:
                connection = context.wrap_socket(connection, server_side=True)
            connections.append(connection)
            return connection, address

    with Server((host, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1], asked
        finally:
            server.shutdown()
            thread.join()
            for connection in connections:
                with contextlib.suppress(OSError):  # it may have ended by itself
                    connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.0 204\r\n\r\n", True),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", True),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", False),
        (b"HTTP/1.1 503 Not yet\r\n\r\n", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n", False),
        (b"HTTP/1.1 2000 OK\r\n\r\n", False),
        (b"SSH-2.0-OpenSSH_9.2\r\n", False),
        (b"\r\n\r\n", False),
        (b"\xff\x00" * 100_000, False),
    ],
)
async def test_x4_the_status_decides(answer: bytes, ready: bool) -> None:
    with serving(answer) as (port, asked):
        address = f"http://127.0.0.1:{port}/health?deep=1"
        seen = await HttpProbe(address).look()
        assert seen.ready is ready
        if ready:
            status = answer[9:12].decode()
            assert seen.text == f"{address} answered {status}"
    assert len(asked) == 1, "redirects are not followed"
    assert asked[0].startswith(b"GET /health?deep=1 HTTP/1.1\r\nHost: 127.0.0.1:")


async def test_x4_an_ipv6_address_can_be_asked() -> None:
    with serving(b"HTTP/1.1 200 OK\r\n\r\n", host="::1") as (port, asked):
        assert (await HttpProbe(f"http://[::1]:{port}").look()).ready
    assert asked[0].startswith(f"GET / HTTP/1.1\r\nHost: [::1]:{port}\r\n".encode())


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 20"])
async def test_x4_who_takes_the_question_and_says_nothing_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setattr(module, "_ANSWER_S", 0.2)
    with serving(answer) as (port, _):
        began = time.monotonic()
        assert not (await HttpProbe(f"http://127.0.0.1:{port}/").look()).ready
        assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/", "http://does-not-exist.invalid/", f"http://{'a' * 70}.b/"]
)
async def test_x4_nobody_there_is_not_ready(address: str) -> None:
    assert not (await HttpProbe(address).look()).ready


@pytest.fixture
def own_certificate(tmp_path: Path) -> ssl.SSLContext:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=test"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def test_x4_a_certificate_of_ones_own_making_will_do(
    own_certificate: ssl.SSLContext,
) -> None:
    with serving(b"HTTP/1.1 200 OK\r\n\r\n", context=own_certificate) as (port, _):
        assert (await HttpProbe(f"https://127.0.0.1:{port}/").look()).ready
        assert not (await HttpProbe(f"http://127.0.0.1:{port}/").look()).ready
