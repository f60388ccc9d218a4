"""Telegram, through python-telegram-bot: long polling, so that a bot needs no address of its own.

An update is confirmed to Telegram by the next request, after it was heard. Telegram keeps no keys:
a post whose answer was lost may be made twice. The token is part of every address: nothing that
leaves here says an address.
"""

import contextlib
import datetime as dt
import logging
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence

import telegram
from telegram import error as errors
from telegram.request import HTTPXRequest

from backburner.gateway.backoff import Backoff
from backburner.gateway.downloading import download
from backburner.gateway.markup import utf16_units
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
from backburner.gateway.telegram.hearing import understood
from backburner.gateway.telegram.wording import formatted, keyboard

BASE = "https://api.telegram.org"

_TEXT = 4096
_CAPTION = 1024
_ENCLOSURE_BYTES = 50 * 1024 * 1024
_POLL_S = 50
_NOT_CHANGED = "message is not modified"

_log = logging.getLogger(__name__)

# The library asks with a warning, in front of people, whether seconds may become a timedelta.
warnings.filterwarnings("ignore", ".*attribute `retry_after` will be", DeprecationWarning)


class Telegram:
    """A bot of Telegram."""

    name = "telegram"
    limits = Limits(_TEXT, utf16_units, _ENCLOSURE_BYTES)

    def __init__(self, token: str, *, base: str = BASE) -> None:
        quieten("httpx", "httpcore", "telegram")
        self._token = token
        self._base = base.rstrip("/")
        self._bot: telegram.Bot | None = None

    async def listen(
        self, hear: Callable[[Heard], Awaitable[None]], menu: Sequence[MenuEntry]
    ) -> None:
        """See `Platform.listen`."""
        backoff = Backoff()
        while True:
            try:
                async with self._connected() as bot:
                    await _announce(bot, menu)
                    await self._poll(bot, hear)
            except Later as later:
                await _wait(backoff, later)

    async def post(self, place: Place, post: Post) -> str:
        """See `Platform.post`."""
        text, entities = formatted(post.text)
        buttons = keyboard(post.buttons)
        with self._translated():
            bot, chat, thread = self._ready(), _number(place.chat), _topic(place)
            if post.enclosure is not None and utf16_units(text) > _CAPTION:
                # More than a caption holds: the file first, then what is said about it.
                await _send_file(bot, chat, post.enclosure, message_thread_id=thread)
            elif post.enclosure is not None:
                sent = await _send_file(
                    bot,
                    chat,
                    post.enclosure,
                    message_thread_id=thread,
                    caption=text or None,
                    caption_entities=entities,
                    reply_markup=buttons,
                )
                return str(sent.message_id)
            sent = await bot.send_message(
                chat,
                text,
                entities=entities,
                message_thread_id=thread,
                reply_markup=buttons,
                link_preview_options=telegram.LinkPreviewOptions(is_disabled=True),
            )
            return str(sent.message_id)

    async def edit(self, place: Place, post_id: str, post: Post) -> None:
        """See `Platform.edit`."""
        text, entities = formatted(post.text)
        buttons = keyboard(post.buttons)
        with self._translated():
            bot, chat, message = self._ready(), _number(place.chat), _number(post_id)
            try:
                if post.enclosure is None:
                    await bot.edit_message_text(
                        text,
                        chat,
                        message,
                        entities=entities,
                        reply_markup=buttons,
                        link_preview_options=telegram.LinkPreviewOptions(is_disabled=True),
                    )
                else:
                    await bot.edit_message_caption(
                        chat, message, caption=text, caption_entities=entities, reply_markup=buttons
                    )
            except errors.BadRequest as error:
                if _NOT_CHANGED not in str(error).lower():
                    raise

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncGenerator[telegram.Bot]:
        bot = telegram.Bot(
            self._token,
            base_url=f"{self._base}/bot",
            base_file_url=f"{self._base}/file/bot",
            request=HTTPXRequest(read_timeout=20, write_timeout=20, media_write_timeout=120),
            get_updates_request=HTTPXRequest(connection_pool_size=1),
        )
        try:
            with self._translated(token_matters=True):
                await bot.initialize()
            self._bot = bot
            yield bot
        finally:
            self._bot = None
            await bot.shutdown()

    async def _poll(self, bot: telegram.Bot, hear: Callable[[Heard], Awaitable[None]]) -> None:
        backoff = Backoff()
        after: int | None = None
        while True:
            try:
                for update in await self._updates(bot, after):
                    if update.callback_query is not None:
                        await _acknowledge(update.callback_query)
                    if (heard := understood(bot, update, self._fetch)) is not None:
                        await hear(heard)
                    after = update.update_id + 1
            except Later as later:
                await _wait(backoff, later)
            except OSError as error:  # a full disk: Telegram tells of it again
                _log.error("what was said could not be noted: %s", error.strerror)
                await backoff.wait(None)
            else:
                backoff.worked()

    async def _updates(self, bot: telegram.Bot, after: int | None) -> tuple[telegram.Update, ...]:
        with self._translated(token_matters=True):
            try:
                return await bot.get_updates(
                    offset=after, timeout=_POLL_S, allowed_updates=["message", "callback_query"]
                )
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                # Not as the library knows it: posts still go out, and we go on asking.
                said = f"something that cannot be read ({type(error).__name__})"
                raise Later(said) from None

    def _ready(self) -> telegram.Bot:
        if self._bot is None:
            raise Later("Telegram is not connected yet", 1)
        return self._bot

    @contextlib.contextmanager
    def _translated(self, *, token_matters: bool = False) -> Generator[None]:
        try:
            yield
        except errors.RetryAfter as error:
            wait = error.retry_after
            seconds = wait.total_seconds() if isinstance(wait, dt.timedelta) else wait
            raise Later("Telegram asks to wait", seconds) from None
        except errors.InvalidToken:
            if token_matters:
                raise BadCredentials(
                    "Telegram does not know this bot: TELEGRAM_BOT_TOKEN is wrong, or was taken"
                    " back (@BotFather gives another)"
                ) from None
            raise Later("Telegram does not take the token any more") from None
        except errors.Conflict:
            raise Later("another program listens with the same token", 5) from None
        except (errors.Forbidden, errors.BadRequest, errors.ChatMigrated) as error:
            raise Refused(reason(error, self._token)) from None
        except errors.TelegramError as error:
            raise Later(reason(error, self._token)) from None

    async def _fetch(self, file_id: str, most: int) -> bytes:
        with self._translated():
            file = await self._ready().get_file(file_id)
        if not file.file_path:
            raise Refused("Telegram does not give the file")
        return await download(file.file_path, most, origins=[self._base])


async def _wait(backoff: Backoff, later: Later) -> None:
    _log.warning("Telegram is not to be reached: %s", later)
    await backoff.wait(later.after_s)


async def _announce(bot: telegram.Bot, menu: Sequence[MenuEntry]) -> None:
    """The menu of commands, and no webhook, which would keep what is said from us."""
    try:
        await bot.delete_webhook()
        await bot.set_my_commands(
            [telegram.BotCommand(entry.name, entry.summary[:256]) for entry in menu]
        )
    except errors.TelegramError as error:
        _log.warning("Telegram did not take the menu of commands: %s", reason(error, bot.token))


async def _acknowledge(query: telegram.CallbackQuery) -> None:
    with contextlib.suppress(errors.TelegramError):  # too old: it was pressed while we were away
        await query.answer()


async def _send_file(
    bot: telegram.Bot,
    chat: int,
    enclosure: Enclosure,
    *,
    message_thread_id: int | None,
    caption: str | None = None,
    caption_entities: Sequence[telegram.MessageEntity] | None = None,
    reply_markup: telegram.InlineKeyboardMarkup | None = None,
) -> telegram.Message:
    file = telegram.InputFile(enclosure.data, filename=enclosure.name)
    if enclosure.is_picture and enclosure.media_type != "image/gif":
        with contextlib.suppress(errors.BadRequest):  # too large or too long to be shown as one
            return await bot.send_photo(
                chat,
                file,
                caption=caption,
                caption_entities=caption_entities,
                message_thread_id=message_thread_id,
                reply_markup=reply_markup,
            )
    return await bot.send_document(
        chat,
        telegram.InputFile(enclosure.data, filename=enclosure.name),
        caption=caption,
        caption_entities=caption_entities,
        message_thread_id=message_thread_id,
        reply_markup=reply_markup,
    )


def _number(id: str) -> int:
    try:
        return int(id)
    except ValueError:
        raise Refused("this is no id of Telegram's") from None


def _topic(place: Place) -> int | None:
    return None if place.thread is None else _number(place.thread)
