"""Listening: a socket, TLS, uvicorn, and an orderly end."""

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import replace
from typing import TYPE_CHECKING

import uvicorn

from backburner.model.errors import UsageError
from backburner.model.values import value
from backburner.runtime.standstill import watch_for_standstill
from backburner.runtime.tokens import TokenService
from backburner.serve.app import application
from backburner.serve.growth import Growth
from backburner.serve.hub import Hub
from backburner.serve.login import Logins
from backburner.serve.measures import Measures
from backburner.serve.service import Service
from backburner.serve.settings import Binding, Load

if TYPE_CHECKING:
    from backburner.app import Backburner

_log = logging.getLogger("backburner.serve")

_LAST_S = 5
"""What requests that are being carried out get at the end."""
_IDLE_S = 30
"""A connection on which nothing is asked."""
_HEAD_BYTES = 64 * 1024
"""Of a request, without its body."""
_WAITING = 2048
"""Connections that the kernel holds until we take them."""

_OTHERS = 400
"""Descriptors for all that is no reader of events."""
_FEW = 16

Announce = Callable[[str, str], None]
"""Told the address, and the link that logs in once."""


class _Server(uvicorn.Server):
    """Ends the streams before it waits for connections to end."""

    def __init__(self, config: uvicorn.Config, service: Service, *, heeds_signals: bool) -> None:
        super().__init__(config)
        self._service = service
        self._heeds_signals = heeds_signals

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Whoever asked us to end is obeyed: the home is closed after this, and then we end."""
        with super().capture_signals() if self._heeds_signals else contextlib.nullcontext():
            yield
            self._captured_signals.clear()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.closing = True
        self._service.hub.close()
        await super().shutdown(sockets)


@value
class Serving:
    """A server that runs."""

    address: str
    login: str
    """A link for a browser, which works once."""
    service: Service
    ended: asyncio.Task[None]


@contextlib.asynccontextmanager
async def serving(
    backburner: "Backburner", binding: Binding | None = None, *, heeds_signals: bool = False
) -> AsyncGenerator[Serving]:
    """The HTTP API and the dashboard, while the block lasts; it ends in order.

    The tools and agents of ``backburner`` are what can be started by name. Port 0 is any that is
    free. NotAllowed where tokens would go over a network unencrypted.
    """
    chosen = binding or Binding()
    _check_tls(chosen)
    with _listening(chosen) as listening:
        port: int = listening.getsockname()[1]
        async with _running(backburner, chosen, port) as service:
            text = await service.tokens.local()
            code = service.logins.new_code(await service.tokens.check(text))
            address = f"{'https' if chosen.tls else 'http'}://{_shown(chosen.host)}:{port}"
            server = _Server(_config(service), service, heeds_signals=heeds_signals)
            running = asyncio.create_task(server.serve(sockets=[listening]))
            try:
                yield Serving(address, f"{address}/#login={code}", service, running)
            finally:
                server.should_exit = True
                await running


async def serve(
    backburner: "Backburner",
    binding: Binding | None = None,
    *,
    announce: Announce = lambda address, _: _log.info("serving at %s", address),
) -> None:
    """Serve until this process is asked to end; see `serving`."""
    async with serving(backburner, binding, heeds_signals=True) as server:
        announce(server.address, server.login)
        await asyncio.wait([server.ended])


def _config(service: Service) -> uvicorn.Config:
    binding = service.binding
    return uvicorn.Config(
        application(service),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        ssl_certfile=binding.tls_cert,
        ssl_keyfile=binding.tls_key,
        timeout_graceful_shutdown=_LAST_S,
        timeout_keep_alive=_IDLE_S,
        h11_max_incomplete_event_size=_HEAD_BYTES,
    )


@contextlib.asynccontextmanager
async def _running(
    backburner: "Backburner", binding: Binding, port: int
) -> AsyncGenerator[Service]:
    """What goes on while a server does."""
    store = backburner.store
    measures = Measures(binding.load)
    hub = Hub(store, _bearable(binding.load), measures)
    tokens = TokenService(store, backburner.home)
    growth = Growth(backburner.home, store, backburner.tasks.fetch_output)
    logins = Logins(tokens, binding, port)
    service = Service(backburner, tokens, binding, hub, growth, logins, measures)
    await hub.start()
    ours = (hub.run(), growth.run(), watch_for_standstill(store))
    tasks = [asyncio.create_task(each) for each in ours]
    try:
        yield service
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _bearable(load: Load) -> Load:
    """As many readers as there are descriptors for: who is one too many is told so."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return replace(load, streams=min(load.streams, max(_FEW, descriptors - _OTHERS)))


def _check_tls(binding: Binding) -> None:
    """Before anybody is told an address."""
    if binding.tls_cert is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(binding.tls_cert, binding.tls_key)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the certificate and its key cannot be used: {error}",
            remedy="give two PEM files that belong together",
        ) from None


def _listening(binding: Binding) -> socket.socket:
    try:
        found = socket.getaddrinfo(
            binding.host, binding.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, OverflowError, UnicodeError) as error:
        raise UsageError(
            f"{binding.host} is no address of this machine: {error}", remedy="choose another --host"
        ) from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # Inherited by every connection: a reader that takes nothing is cut off by the kernel.
            listening.setsockopt(
                socket.IPPROTO_TCP,
                socket.TCP_USER_TIMEOUT,
                round(binding.load.stalled_s * 1000),
            )
        listening.bind(address)
        listening.listen(_WAITING)  # whoever is told the address finds somebody there
    except (OSError, OverflowError) as error:
        listening.close()
        raise UsageError(
            f"port {binding.port} of {binding.host} cannot be used: {error}",
            remedy="choose another --port, or 0 for any that is free",
        ) from None
    return listening


def _shown(host: str) -> str:
    """In an address: what is bound to everything is reached at this machine's own."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return "localhost"
    return f"[{host}]" if ":" in host else host
