"""The two ways in which Slack tells what happens: a socket that we open, or requests to us.

Both go through slack-bolt, which checks signatures and connects again. Slack tells a message again
that was not acknowledged, so it is acknowledged after it was heard; commands and buttons it tells
once and gives three seconds, so they are acknowledged by then whatever happens.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from backburner.model.errors import UsageError
from backburner.model.values import value

PATH = "/slack/events"

_ACKNOWLEDGE_BY_S = 2.0

Take = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]
"""Hears one thing that Slack tells."""


@value
class Me:
    """Who the bot is."""

    user: str
    bot: str
    team: str


@value
class Socket:
    """Socket mode: nothing has to be reachable from outside."""

    app_token: str
    ping_s: float = 10

    async def open(self, take: Take, me: Me, base_url: str, log: logging.Logger) -> None:
        """Stay connected until cancelled."""
        web_client = AsyncWebClient(base_url=base_url, logger=log, retry_handlers=[])
        first = await web_client.apps_connections_open(  # pyright: ignore[reportUnknownMemberType]
            app_token=self.app_token
        )
        async with _bolt(take, me, base_url, log, secret="") as app:
            handler = AsyncSocketModeHandler(
                app,
                self.app_token,
                logger=log,
                web_client=web_client,
                ping_interval=self.ping_s,
            )
            handler.client.wss_uri = first["url"]
            try:
                await handler.connect_async()
                await asyncio.Event().wait()
            finally:
                await handler.close_async()


@value
class Requests:
    """Events over HTTP, signed by Slack; a proxy with a certificate stands before it."""

    signing_secret: str
    port: int
    host: str = "127.0.0.1"

    async def open(self, take: Take, me: Me, base_url: str, log: logging.Logger) -> None:
        """Serve until cancelled."""
        async with _bolt(take, me, base_url, log, secret=self.signing_secret) as app:
            server = app.server(port=self.port, path=PATH, host=self.host)
            runner = web.AppRunner(server.web_app, access_log=None)
            await runner.setup()
            try:
                await self._listen(runner)
                await asyncio.Event().wait()
            finally:
                await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        try:
            await web.TCPSite(runner, self.host, self.port).start()
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {self.port}: {error.strerror}",
                remedy="set SLACK_PORT to a free one",
            ) from None


Door = Socket | Requests


@contextlib.asynccontextmanager
async def _bolt(
    take: Take, me: Me, base_url: str, log: logging.Logger, *, secret: str
) -> AsyncGenerator[AsyncApp]:
    """The app; what is still being heard at the end is not acknowledged, and ends with it."""
    hearing: set[asyncio.Task[None]] = set()

    async def authorize() -> AuthorizeResult:
        # Known since the start: asked for each request, they would overtake each other.
        return AuthorizeResult(
            enterprise_id=None, team_id=me.team, bot_user_id=me.user, bot_id=me.bot
        )

    async def everything(body: dict[str, Any]) -> BoltResponse:
        heard = asyncio.create_task(take(body))
        hearing.add(heard)
        heard.add_done_callback(hearing.discard)
        again = body.get("type") == "event_callback"
        await asyncio.wait({heard}, timeout=None if again else _ACKNOWLEDGE_BY_S)
        if not heard.done():
            return BoltResponse(status=200, body="")
        if heard.cancelled():
            return BoltResponse(status=500, body="")
        if (error := heard.exception()) is None:
            return BoltResponse(status=200, body="")
        log.error("something that Slack told could not be heard: %s", error)
        return BoltResponse(status=500, body="")

    app = AsyncApp(
        client=AsyncWebClient(base_url=base_url, logger=log),
        authorize=authorize,
        signing_secret=secret,
        logger=log,
        name="backburner",
    )
    app.use(everything)  # pyright: ignore[reportUnknownMemberType]
    try:
        yield app
    finally:
        ending = list(hearing)
        for each in ending:
            each.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
