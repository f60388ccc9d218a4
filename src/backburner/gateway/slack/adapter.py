"""Slack, through slack-bolt: its socket or its requests for what is said, its Web API for posts.

A post carries its key in its metadata, and is looked for in the history of its place before it is
made where it may be there already. Nobody is mentioned by a post, and no link is unfurled.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from http import HTTPStatus
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from backburner.gateway.backoff import Backoff
from backburner.gateway.downloading import download
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
from backburner.gateway.quiet import InOneLine, quieten, reason
from backburner.gateway.slack.doors import Door, Me, Socket, Take
from backburner.gateway.slack.hearing import understood
from backburner.gateway.slack.history import History, file_name, metadata_of
from backburner.gateway.slack.web_api import WebApi
from backburner.gateway.slack.wording import blocks_of, measured, worded

BASE = "https://slack.com"
FILE_ORIGINS = ("https://files.slack.com",)

_TEXT = 3000
"""What a section holds; a text without buttons could be longer."""
_ENCLOSURE_BYTES = 100 * 1024 * 1024
_TIMEOUT_S = 60
_FILE = "file:"
"""How the id of a post begins that is a file alone."""

_BAD_TOKEN = {
    "account_inactive",
    "invalid_auth",
    "not_allowed_token_type",
    "not_authed",
    "token_expired",
    "token_revoked",
}
_BUSY = {"fatal_error", "internal_error", "ratelimited", "request_timeout", "service_unavailable"}
_REMEDIES = {
    "missing_scope": "the app has not all the scopes that it needs: see docs/slack.md",
    "not_in_channel": "the bot is not in this channel: invite it",
    "channel_not_found": "there is no such channel, or the bot is not in it: invite it",
    "is_archived": "the channel is archived",
}

_log = logging.getLogger(__name__)


class Slack:
    """A bot of Slack."""

    name = "slack"
    limits = Limits(_TEXT, measured, _ENCLOSURE_BYTES)

    def __init__(self, token: str, door: Door, *, base: str = BASE) -> None:
        self._token = token
        self._door = door
        self._base = base.rstrip("/")
        self._file_origins = FILE_ORIGINS if base == BASE else (base,)
        secret = door.app_token if isinstance(door, Socket) else door.signing_secret
        self._secrets = (token, secret)
        self._library = logging.getLogger(f"{__name__}.library")
        self._library.setLevel(logging.WARNING)
        self._library.filters = [InOneLine(*self._secrets)]
        quieten("slack_bolt", "slack_sdk")
        self._api: WebApi | None = None
        self._history: History | None = None

    async def listen(
        self,
        hear: Callable[[Heard], Awaitable[None]],
        menu: Sequence[MenuEntry],  # noqa: ARG002 - the commands of an app are in its manifest
    ) -> None:
        """See `Platform.listen`."""
        backoff = Backoff()
        while True:
            try:
                async with self._connected() as api:
                    with self._translated(token_matters=True):
                        me = await _who(api)
                        await self._door.open(
                            self._heard_by(hear, me), me, api.base_url, self._library
                        )
            except (Later, Refused) as error:
                _log.warning("Slack is not to be reached: %s", error)
                await backoff.wait(getattr(error, "after_s", None))

    async def post(self, place: Place, post: Post) -> str:
        """See `Platform.post`."""
        api, history = self._ready()
        with self._translated(in_doubt=(history, place)):
            made: str | None = None
            if post.text.strip() or post.buttons:
                made = await history.find(place, post.key)
                if made is None:
                    made = await _send_text(api, place, post)
                    history.note(place, post.key, made)
            if post.enclosure is not None:
                name = file_name(post.enclosure.name, post.key)
                file_id = await history.find(place, name)
                if file_id is None:
                    file_id = await _send_file(api, place, post.enclosure, name)
                    history.note(place, name, file_id)
                made = made or f"{_FILE}{file_id}"
            if made is None:
                raise Refused("there is nothing to post")
            return made

    async def edit(self, place: Place, post_id: str, post: Post) -> None:
        """See `Platform.edit`."""
        api, _ = self._ready()
        if post_id.startswith(_FILE):
            raise Refused("a file cannot be changed")
        with self._translated():
            await api.call(
                "chat.update",
                channel=place.chat,
                ts=post_id,
                text=worded(post.text),
                blocks=blocks_of(post.text, post.buttons),
                metadata=metadata_of(post.key),
                parse="none",
                link_names=False,
            )

    def _heard_by(self, hear: Callable[[Heard], Awaitable[None]], me: Me) -> Take:
        turn = asyncio.Lock()

        async def take(body: dict[str, Any]) -> None:
            async with turn:  # they come as tasks: they are heard in their order
                if (heard := understood(body, me.user, self._fetch)) is not None:
                    await hear(heard)

        return take

    async def _fetch(self, address: str, most: int) -> bytes:
        headers = {"Authorization": f"Bearer {self._token}"}
        return await download(address, most, origins=self._file_origins, headers=headers)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncGenerator[WebApi]:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            self._api = WebApi(self._token, self._base, session, self._library)
            self._history = History(self._api)
            try:
                yield self._api
            finally:
                self._api = self._history = None

    def _ready(self) -> tuple[WebApi, History]:
        if self._api is None or self._history is None:
            raise Later("Slack is not connected yet", 1)
        return self._api, self._history

    @contextlib.contextmanager
    def _translated(
        self, *, token_matters: bool = False, in_doubt: tuple[History, Place] | None = None
    ) -> Generator[None]:
        try:
            yield
        except SlackApiError as error:
            name, seconds = _error_of(error)
            if name in _BAD_TOKEN and token_matters:
                raise BadCredentials(
                    f"Slack does not know this bot ({name}): SLACK_BOT_TOKEN (xoxb-…) or"
                    " SLACK_APP_TOKEN (xapp-…) is wrong, or was taken back"
                ) from None
            if name in _BUSY | _BAD_TOKEN:
                _doubt(in_doubt)
                raise Later(f"Slack does not take it now ({name})", seconds) from None
            raise Refused(_REMEDIES.get(name, f"Slack does not take it ({name})")) from None
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            _doubt(in_doubt)
            raise Later(reason(error, *self._secrets)) from None
        except Later:
            _doubt(in_doubt)
            raise


def _doubt(where: tuple[History, Place] | None) -> None:
    if where is not None:
        history, place = where
        history.doubt(place)


def _error_of(error: SlackApiError) -> tuple[str, float | None]:
    """Slack's word for it, and how long it asks to wait."""
    response: Any = error.response
    status = getattr(response, "status_code", None) or getattr(response, "status", 0)
    data = getattr(response, "data", None)
    name = data.get("error") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    seconds = None
    with contextlib.suppress(KeyError, ValueError, TypeError):
        seconds = float(response.headers["Retry-After"])
    if not isinstance(name, str):
        name = "ratelimited" if seconds is not None else "service_unavailable"
    return (name if status < HTTPStatus.INTERNAL_SERVER_ERROR else "service_unavailable"), seconds


async def _send_text(api: WebApi, place: Place, post: Post) -> str:
    answer = await api.call(
        "chat.postMessage",
        channel=place.chat,
        thread_ts=place.thread,
        text=worded(post.text),
        blocks=blocks_of(post.text, post.buttons) or None,
        metadata=metadata_of(post.key),
        parse="none",
        link_names=False,
        unfurl_links=False,
        unfurl_media=False,
    )
    return str(answer["ts"])


async def _send_file(api: WebApi, place: Place, enclosure: Enclosure, name: str) -> str:
    offer = await api.call("files.getUploadURLExternal", filename=name, length=len(enclosure.data))
    status = await api.upload(str(offer["upload_url"]), enclosure.data)
    if status != HTTPStatus.OK:
        raise Later(f"Slack did not take the file: status {status}")
    file_id = str(offer["file_id"])
    await api.call(
        "files.completeUploadExternal",
        files=[{"id": file_id, "title": enclosure.name}],
        channel_id=place.chat,
        thread_ts=place.thread,
    )
    return file_id


async def _who(api: WebApi) -> Me:
    answer = await api.call("auth.test")
    return Me(str(answer["user_id"]), str(answer["bot_id"]), str(answer["team_id"]))
