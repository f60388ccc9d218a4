"""Ports for servers that a test starts, ends and starts again by their numbers.

Not from the range out of which the kernel gives ports to whoever asks for any: between our look
and the server's bind, or while the server is away, somebody else would be given the same one.
"""

import os
import socket
import zlib

_FIRST, _LAST = 20_000, 30_000
_EACH = 100


def free_port() -> int:
    """One on which nobody listens, and that no other process of a test run looks at."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    run = zlib.crc32(os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid())).encode())
    place = (run + worker) % ((_LAST - _FIRST) // _EACH)
    for _ in range(2 * _EACH):
        port = _FIRST + place * _EACH + _next() % _EACH
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("every port is taken")


_given = 0


def _next() -> int:
    global _given  # noqa: PLW0603 - each is given once
    _given += 1
    return _given
