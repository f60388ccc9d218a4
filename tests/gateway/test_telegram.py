"""Telegram through its real library (B3, B5, B6), against a server that speaks the Bot API."""

import asyncio
import errno
import logging
from collections.abc import Iterator

import pytest

from backburner.gateway.platform import (
    BadCredentials,
    Button,
    Enclosure,
    Later,
    Place,
    Post,
    Refused,
)
from backburner.gateway.splitting import cut
from backburner.gateway.telegram.adapter import Telegram
from tests.gateway.listening import listening
from tests.gateway.telegram_server import ADA, BOT_ID, TOKEN, Fault, TelegramServer
from tests.waiting import wait_until_async

HERE = Place(str(ADA))
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer.running() as running:
        yield running


@pytest.fixture
def telegram(server: TelegramServer) -> Telegram:
    return Telegram(TOKEN, base=server.url)


async def connected(server: TelegramServer) -> None:
    await wait_until_async(lambda: server.polls > 0)


async def test_a_command_is_heard_however_it_was_entered(
    server: TelegramServer, telegram: Telegram
) -> None:
    """B1, B3: also with the name of the bot, as groups write it."""
    async with listening(telegram) as ears:
        number = server.says("/bg count the files")
        server.says("/bg@Our_Bot\ncount", chat=-100)
        server.says("/bg@another_bot count", chat=-100)
        server.says("/tasks", chat=-100)
        first, second, third = [await ears.message(each) for each in (1, 2, 3)]
        assert (first.text, first.place, first.person.id) == ("/bg count the files", HERE, "1001")
        assert first.key == f"{BOT_ID}:{ADA}:{number}", (
            "another bot has a message of this number, too"
        )
        assert first.person.name == "Ada L"
        assert second.text == "/bg\ncount"
        assert (third.text, third.place) == ("/tasks", Place("-100"))
        assert [each["command"] for each in server.commands] == ["background", "tasks"]


async def test_of_a_group_only_what_is_said_to_the_bot_is_heard(
    server: TelegramServer, telegram: Telegram
) -> None:
    async with listening(telegram) as ears:
        server.says("lunch?", chat=-100)
        server.says("I am a bot too", chat=-100, bot=True)
        server.says("/bg from a bot", bot=True)
        chat, ada = {"id": 1, "type": "private"}, {"id": 1, "is_bot": False, "first_name": "Ada"}
        edited = {"message_id": 1, "date": 1, "edit_date": 2, "chat": chat, "from": ada}
        server.tells({"edited_message": {**edited, "text": "/bg anew"}})
        ours = {"id": 123456789, "is_bot": True, "first_name": "Ours"}
        answered = {"message_id": 5, "date": 1, "chat": {"id": -100, "type": "group"}, "from": ours}
        server.says("yes", chat=-100, reply_to_message=answered)
        server.says("@our_bot what runs?", chat=-100)
        assert [(await ears.message(each)).text for each in (1, 2)] == ["yes", "what runs?"]
        await wait_until_async(lambda: not server.unconfirmed)
        assert len(ears.heard) == 2


async def test_an_answer_goes_into_the_topic_it_was_asked_in(
    server: TelegramServer, telegram: Telegram
) -> None:
    """B5."""
    async with listening(telegram) as ears:
        server.says("/bg x", chat=-100, thread=7)
        place = (await ears.message()).place
        assert place == Place("-100", "7")
        await telegram.post(place, Post("k", "done"))
        assert (server.sent[0].chat, server.sent[0].fields["message_thread_id"]) == (-100, "7")


async def test_buttons_are_acknowledged_at_once_and_heard(
    server: TelegramServer, telegram: Telegram
) -> None:
    async with listening(telegram) as ears:
        await connected(server)
        ears.open.clear()
        number = await telegram.post(HERE, Post("k", "runs", (Button("Stop", "stop:bg_1"),)))
        assert server.sent[0].buttons == {"Stop": "stop:bg_1"}
        server.presses(server.sent[0], "stop:bg_1")
        await wait_until_async(lambda: server.answered)
        assert not ears.heard
        ears.open.set()
        press = await ears.press()
        assert (press.action, press.post_id, press.place) == ("stop:bg_1", number, HERE)
        assert press.person.id == str(ADA)


async def test_code_is_marked_and_nothing_else_is_markup(
    server: TelegramServer, telegram: Telegram
) -> None:
    """Hostile text arrives as it is; places are counted in UTF-16."""
    text = "\U0001f600 <b>*x*</b> `a_b`\n```python\nprint('\U0001f600')\n```\nend \ud800\x00"
    async with listening(telegram):
        await connected(server)
        await telegram.post(HERE, Post("k", text))
    sent = server.sent[0]
    assert sent.text == "\U0001f600 <b>*x*</b> a_b\nprint('\U0001f600')\nend \ufffd\ufffd"
    units = sent.text.encode("utf-16-le")
    marked = [
        (each["type"], units[2 * each["offset"] :][: 2 * each["length"]].decode("utf-16-le"))
        for each in sent.fields["entities"]
    ]
    assert marked == [("code", "a_b"), ("pre", "print('\U0001f600')")]
    assert sent.fields["entities"][1]["language"] == "python"


async def test_a_long_answer_is_within_the_limit_as_telegram_counts(
    server: TelegramServer, telegram: Telegram
) -> None:
    async with listening(telegram):
        await connected(server)
        parts = cut("\U0001f600" * 5000, telegram.limits)
        for number, part in enumerate(parts):
            await telegram.post(HERE, Post(f"k{number}", part))
    assert len(server.sent) == 3
    assert "".join(each.text for each in server.sent) == "\U0001f600" * 5000


async def test_a_post_is_changed_and_one_that_is_the_same_is_left(
    server: TelegramServer, telegram: Telegram
) -> None:
    async with listening(telegram):
        await connected(server)
        number = await telegram.post(HERE, Post("k", "1 of 3", (Button("Stop", "stop"),)))
        for _ in range(2):
            await telegram.edit(HERE, number, Post("k", "`3` of 3"))
    assert [each["text"] for each in server.edits] == ["3 of 3"]
    assert server.edits[0]["message_id"] == number
    assert "reply_markup" not in server.edits[0]


async def test_pictures_and_files_go_out_as_such(
    server: TelegramServer, telegram: Telegram
) -> None:
    """B5; what a caption does not hold is said after the file."""
    async with listening(telegram):
        await connected(server)
        picture, data = (
            Enclosure("plot.png", "image/png", PNG),
            Enclosure("a.csv", "text/csv", b"1"),
        )
        await telegram.post(HERE, Post("1", "a `plot`", enclosure=picture))
        await telegram.post(HERE, Post("2", "", enclosure=data))
        await telegram.post(HERE, Post("3", "word " * 300, enclosure=data))
        server.spoil("sendPhoto", Fault(400, "Bad Request: PHOTO_INVALID_DIMENSIONS"))
        await telegram.post(HERE, Post("4", "", enclosure=picture))
    methods = [each.method for each in server.sent]
    assert methods == ["sendPhoto", "sendDocument", "sendDocument", "sendMessage", "sendDocument"]
    assert server.sent[0].text == "a plot"
    assert server.sent[0].fields["caption_entities"][0]["type"] == "code"
    assert list(server.sent[0].files.values()) == [("plot.png", PNG)]
    assert list(server.sent[1].files.values()) == [("a.csv", b"1")]


async def test_files_of_people_are_fetched_within_a_size_and_from_telegram_only(
    server: TelegramServer, telegram: Telegram
) -> None:
    """B4."""
    server.files = {"small": b"hello", "large": bytes(1_000_000), "moved-here": b"moved"}
    server.redirects = {
        "elsewhere": "http://127.0.0.1:9/x",
        "moved": f"{server.url}/file/bot{TOKEN}/documents/moved-here",
        "nowhere": "http://[",
    }
    async with listening(telegram) as ears:
        for number, name in enumerate(["small", "large", "moved", "elsewhere", "nowhere"], 1):
            document = {"file_id": name, "file_unique_id": name, "file_name": f"{name}.txt"}
            server.says(caption="look", document=document)
            upload = (await ears.message(number)).uploads[0]
            assert upload.name == f"{name}.txt"
            if name in {"small", "moved"}:
                assert await upload.fetch(1000) in {b"hello", b"moved"}
            else:
                with pytest.raises(Refused) as refused:
                    await upload.fetch(1000)
                assert TOKEN not in str(refused.value)
        photo = [{"file_id": "small", "file_unique_id": "p", "width": 1, "height": 1}]
        server.says(photo=photo)
        message = await ears.message(6)
        assert message.uploads[0].media_type == "image/jpeg"


async def test_telegrams_wait_is_obeyed(server: TelegramServer, telegram: Telegram) -> None:
    async with listening(telegram):
        await connected(server)
        server.spoil("sendMessage", Fault(429, "Too Many Requests", {"retry_after": 17}))
        with pytest.raises(Later) as later:
            await telegram.post(HERE, Post("k", "x"))
    assert later.value.after_s == 17


async def test_a_chat_that_is_gone_is_refused_and_a_network_that_is_away_is_for_later(
    server: TelegramServer, telegram: Telegram
) -> None:
    """B6."""
    with pytest.raises(Later):
        await telegram.post(HERE, Post("k", "before anybody listens"))
    async with listening(telegram):
        await connected(server)
        server.blocked.add(ADA)
        with pytest.raises(Refused, match="blocked"):
            await telegram.post(HERE, Post("k", "x"))
        server.spoil("sendMessage", Fault(400, "Bad Request: chat not found"), Fault(502))
        with pytest.raises(Refused, match="Chat not found"):
            await telegram.post(Place("1"), Post("k", "x"))
        with pytest.raises(Later):
            await telegram.post(Place("1"), Post("k", "x"))
        server.spoil("sendMessage", Fault(200, after=True))
        with pytest.raises(Later):
            await telegram.post(Place("1"), Post("k", "x"))
        with pytest.raises(Refused):
            await telegram.post(Place("not a number"), Post("k", "x"))


async def test_what_was_said_while_the_network_was_away_is_heard_once_it_is_back(
    server: TelegramServer, telegram: Telegram
) -> None:
    async with listening(telegram) as ears:
        server.says("one")
        await ears.message()
        await wait_until_async(lambda: not server.unconfirmed)
        server.go_away()
        server.says("two")
        server.come_back()
        assert (await ears.message(2)).text == "two"
        await wait_until_async(lambda: not server.unconfirmed)
        assert [each.text for each in [await ears.message(1), await ears.message(2)]] == [
            "one",
            "two",
        ]


async def test_what_could_not_be_noted_is_told_again_and_listening_goes_on(
    server: TelegramServer, telegram: Telegram
) -> None:
    """A full disk does not end the gateway, and loses nothing that was said."""
    async with listening(telegram) as ears:
        ears.fails = [OSError(errno.ENOSPC, "No space left on device")]
        server.says("one")
        server.says("two")
        assert [(await ears.message(each)).text for each in (1, 2)] == ["one", "two"]
        assert ears.fails == []
        await wait_until_async(lambda: not server.unconfirmed)
        assert len(ears.heard) == 2


async def test_what_nobody_heard_is_told_again_to_the_next_that_listens(
    server: TelegramServer, telegram: Telegram
) -> None:
    """B9: an update is confirmed after it was heard, with the same key."""
    async with listening(telegram) as ears:
        ears.open.clear()
        server.says("/bg x")
        await wait_until_async(lambda: server.polls)
    async with listening(telegram) as ears:
        assert (await ears.message()).text == "/bg x"


async def test_what_the_library_cannot_read_does_not_end_us(
    server: TelegramServer, telegram: Telegram, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(telegram):
        server.tells({"message": {"message_id": 1}})
        await wait_until_async(lambda: "cannot be read" in caplog.text)
        await wait_until_async(lambda: server.polls > 1)
        await telegram.post(HERE, Post("k", "still here"))
    assert "Traceback" not in caplog.text


async def test_a_wrong_token_is_one_clear_line(server: TelegramServer) -> None:
    with pytest.raises(BadCredentials) as bad:
        await Telegram("1:wrong-secret", base=server.url).listen(_hear, ())
    assert "TELEGRAM_BOT_TOKEN" in str(bad.value)
    assert "wrong-secret" not in str(bad.value)
    assert bad.value.__suppress_context__


async def test_a_token_that_was_taken_back_ends_listening(
    server: TelegramServer, telegram: Telegram
) -> None:
    listener = asyncio.create_task(telegram.listen(_hear, ()))
    await connected(server)
    server.token = "another"
    server.tells({"poll_answer": {"poll_id": "1", "option_ids": [], "option_persistent_ids": []}})
    with pytest.raises(BadCredentials):
        await listener


async def test_two_that_listen_by_mistake_are_told_apart(
    server: TelegramServer, telegram: Telegram, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(telegram):
        await connected(server)
        async with listening(Telegram(TOKEN, base=server.url)):
            await wait_until_async(lambda: "another program listens" in caplog.text)


async def test_no_log_and_no_error_says_the_token(
    server: TelegramServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything that any library logs, while things go well and badly."""
    caplog.set_level(logging.DEBUG)
    telegram = Telegram(TOKEN, base=server.url)
    server.spoil("getUpdates", Fault(500, "oops"), Fault(200, after=True))
    server.spoil("setMyCommands", Fault(400, "Bad Request: bad commands"))
    async with listening(telegram) as ears:
        server.says("hello")
        await ears.message()
        server.spoil("sendMessage", Fault(200, after=True))
        with pytest.raises(Later) as later:
            await telegram.post(HERE, Post("k", "x"))
    server.go_away()
    with pytest.raises(Later):
        async with listening(telegram):
            await telegram.post(HERE, Post("k", "x"))
    secret = TOKEN.split(":")[1]
    assert secret not in caplog.text
    assert secret not in str(later.value)
    assert "Bad commands" in caplog.text


async def _hear(heard: object) -> None:
    raise AssertionError(heard)
