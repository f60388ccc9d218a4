"""Discord, through discord.py: its gateway for what is said, its HTTP interface for posts.

A post carries a nonce made of its key: for some minutes Discord answers the same nonce with the
message that is there already. Nobody is mentioned by a post, whatever its text says.
"""

import asyncio
import contextlib
import hashlib
import io
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from backburner.gateway.backoff import Backoff
from backburner.gateway.discord.hearing import FILE_ORIGINS, Client
from backburner.gateway.discord.wording import measured, view_of, worded
from backburner.gateway.platform import (
    BadCredentials,
    Enclosure,
    Heard,
    Later,
    Limits,
    MenuEntry,
    Place,
    Post,
    Refused,
)
from backburner.gateway.quiet import quieten, reason

_TEXT = 2000
_ENCLOSURE_BYTES = 10 * 1024 * 1024
_NONCE = 25
"""Characters that Discord takes."""
_UNAUTHORIZED, _TOO_MANY = 401, 429
_TOKEN_REFUSED = 4004
"""Of the gateway's close codes."""

_log = logging.getLogger(__name__)


class Discord:
    """A bot of Discord."""

    name = "discord"
    limits = Limits(_TEXT, measured, _ENCLOSURE_BYTES)

    def __init__(self, token: str, *, base: str | None = None) -> None:
        quieten("discord")
        self._token = token
        self._file_origins = FILE_ORIGINS
        self._client: Client | None = None
        if base is not None:  # the library has one place for the process
            Route.BASE = f"{base.rstrip('/')}/api/v10"
            DiscordWebSocket.DEFAULT_GATEWAY = _gateway_at(base)
            self._file_origins = (base,)

    async def listen(
        self, hear: Callable[[Heard], Awaitable[None]], menu: Sequence[MenuEntry]
    ) -> None:
        """See `Platform.listen`."""
        backoff = Backoff()
        while True:
            try:
                with self._translated(token_matters=True):
                    await self._connect(Client(hear, menu, file_origins=self._file_origins))
                reason_to_wait = Later("the connection was closed")
            except (Later, Refused) as error:
                reason_to_wait = error
            _log.warning("Discord is not to be reached: %s", reason_to_wait)
            await backoff.wait(getattr(reason_to_wait, "after_s", None))

    async def post(self, place: Place, post: Post) -> str:
        """See `Platform.post`."""
        with self._translated():
            channel = self._channel(place)
            sent = await channel.send(
                worded(post.text) or None,
                nonce=hashlib.sha256(post.key.encode()).hexdigest()[:_NONCE],
                suppress_embeds=True,
                view=view_of(post.buttons) or discord.utils.MISSING,
                file=_file(post.enclosure) or discord.utils.MISSING,
            )
            return str(sent.id)

    async def edit(self, place: Place, post_id: str, post: Post) -> None:
        """See `Platform.edit`."""
        with self._translated():
            message = self._channel(place).get_partial_message(_number(post_id))
            await message.edit(content=worded(post.text), view=view_of(post.buttons))

    async def _connect(self, client: Client) -> None:
        try:
            async with client:
                await client.login(self._token)
                await client.announce()
                self._client = client
                await _until_closed(client)
        finally:
            self._client = None

    def _channel(self, place: Place) -> discord.PartialMessageable:
        if self._client is None:
            raise Later("Discord is not connected yet", 1)
        return self._client.get_partial_messageable(_number(place.thread or place.chat))

    @contextlib.contextmanager
    def _translated(self, *, token_matters: bool = False) -> Generator[None]:
        try:
            yield
        except discord.PrivilegedIntentsRequired:
            raise BadCredentials(
                "Discord does not let this bot read messages: tick MESSAGE CONTENT INTENT on the"
                " page Bot of its application, at discord.com/developers"
            ) from None
        except discord.ConnectionClosed as error:
            if error.code == _TOKEN_REFUSED:
                raise _bad_token() from None
            raise Later(reason(error, self._token)) from None
        except discord.LoginFailure:
            raise _bad_token() from None
        except discord.RateLimited as error:
            raise Later("Discord asks to wait", error.retry_after) from None
        except discord.DiscordServerError as error:
            raise Later(reason(error, self._token)) from None
        except discord.HTTPException as error:
            said = reason(error, self._token)
            if error.status == _UNAUTHORIZED and token_matters:
                raise _bad_token() from None
            if error.status in {_UNAUTHORIZED, _TOO_MANY}:
                raise Later(said, _seconds(error)) from None
            raise Refused(said) from None
        except (discord.DiscordException, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Later(reason(error, self._token)) from None


async def _until_closed(client: Client) -> None:
    # A task of its own, ended by closing: `wait_for`, which the library connects with, can lose
    # a cancellation, and we would never leave.
    connection = asyncio.ensure_future(client.connect())
    try:
        await asyncio.wait({connection})
        await connection
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # Of an event that the library does not understand: it ends the connection, not us.
        said = f"something that cannot be read ({type(error).__name__})"
        raise Later(said) from None
    finally:
        await client.close()
        connection.cancel()
        await asyncio.gather(connection, return_exceptions=True)


def _bad_token() -> BadCredentials:
    return BadCredentials(
        "Discord does not know this bot: DISCORD_BOT_TOKEN is wrong, or was reset (the page Bot of"
        " its application, at discord.com/developers, gives another)"
    )


def _file(enclosure: Enclosure | None) -> discord.File | None:
    if enclosure is None:
        return None
    return discord.File(io.BytesIO(enclosure.data), filename=enclosure.name)


def _seconds(error: discord.HTTPException) -> float | None:
    with contextlib.suppress(KeyError, ValueError):
        return float(error.response.headers["Retry-After"])
    return None


def _gateway_at(base: str) -> yarl.URL:
    url = yarl.URL(base)
    return url.with_scheme("wss" if url.scheme == "https" else "ws").with_path("/gateway")


def _number(id: str) -> int:
    try:
        return int(id)
    except ValueError:
        raise Refused("this is no id of Discord's") from None
