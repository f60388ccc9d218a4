"""What an update of Telegram says, as the gateway hears it. Touches nothing.

In a group only what is said to the bot counts: a command, an answer to a post of its, or a text
that names it.
"""

import re
from collections.abc import Awaitable, Callable, Iterator

import telegram

from backburner.gateway.platform import Heard, Message, Person, Place, Press, Refused, Upload

Fetch = Callable[[str, int], Awaitable[bytes]]
"""A file by its id, of at most so many bytes."""

_COMMAND = re.compile(r"/(\w+)(?:@(\w+))?(?=\s|$)(.*)", re.DOTALL)


def understood(bot: telegram.Bot, update: telegram.Update, fetch: Fetch) -> Heard | None:
    """What somebody wrote or pressed; None for all that is not for us."""
    if (query := update.callback_query) is not None:
        return _press(bot, query)
    message = update.message
    if message is None or message.from_user is None or message.from_user.is_bot:
        return None
    text = _addressed(bot, message)
    if text is None:
        return None
    uploads = tuple(_uploads(message, fetch))
    if not text and not uploads:
        return None  # somebody joined, a poll, a place: nothing that was said
    return Message(
        # Each bot counts the messages of a private chat for itself, from one on.
        key=f"{bot.id}:{message.chat.id}:{message.message_id}",
        place=_place(message),
        person=_person(message.from_user),
        text=text,
        uploads=uploads,
    )


def _uploads(message: telegram.Message, fetch: Fetch) -> Iterator[Upload]:
    number = message.message_id
    if message.photo:
        largest = message.photo[-1]
        name = f"photo-{number}.jpg"
        yield _upload(largest.file_id, name, "image/jpeg", largest.file_size, fetch)
    media = message.document or message.video or message.audio
    if media is not None:
        name = media.file_name or f"file-{number}"
        kind = media.mime_type or "application/octet-stream"
        yield _upload(media.file_id, name, kind, media.file_size, fetch)
    if (voice := message.voice) is not None:
        kind = voice.mime_type or "audio/ogg"
        yield _upload(voice.file_id, f"voice-{number}.ogg", kind, voice.file_size, fetch)


def _upload(file_id: str, name: str, kind: str, size: int | None, fetch: Fetch) -> Upload:
    async def fetched(most: int) -> bytes:
        if size is not None and size > most:
            raise Refused(f"the file is larger than {most} bytes")
        return await fetch(file_id, most)

    return Upload(name, kind, size, fetched)


def _addressed(bot: telegram.Bot, message: telegram.Message) -> str | None:
    """What was said to us; None when it was said to others: a group's talk is not ours."""
    text = message.text or message.caption or ""
    ours = bot.username.lower()
    if (command := _COMMAND.fullmatch(text)) is not None:
        name, whose, rest = command.groups()
        return f"/{name}{rest}" if whose is None or whose.lower() == ours else None
    if message.chat.type == telegram.Chat.PRIVATE:
        return text
    answered = message.reply_to_message
    if answered is not None and answered.from_user and answered.from_user.id == bot.id:
        return text
    without = re.sub(rf"@{re.escape(ours)}\b", "", text, count=1, flags=re.IGNORECASE)
    return without.strip() if without != text else None


def _press(bot: telegram.Bot, query: telegram.CallbackQuery) -> Press | None:
    if query.message is None or query.data is None or query.from_user.is_bot:
        return None
    return Press(
        key=f"{bot.id}:{query.id}",
        place=_place(query.message),
        person=_person(query.from_user),
        action=query.data,
        post_id=str(query.message.message_id),
    )


def _place(message: telegram.MaybeInaccessibleMessage) -> Place:
    thread = None
    if isinstance(message, telegram.Message) and message.is_topic_message:
        thread = message.message_thread_id
    return Place(str(message.chat.id), None if thread is None else str(thread))


def _person(user: telegram.User) -> Person:
    return Person(str(user.id), user.full_name)
