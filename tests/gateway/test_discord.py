"""Discord through its real library (B3, B5, B6), against a server that speaks its protocol."""

import logging
from collections.abc import Iterator

import pytest

from backburner.gateway.discord.adapter import Discord
from backburner.gateway.discord.wording import measured, worded
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
from tests.gateway.discord_server import (
    ADA,
    BOT,
    DIRECT,
    ROOM,
    THREAD,
    TOKEN,
    DiscordServer,
    Fault,
    attachment,
)
from tests.gateway.listening import listening
from tests.waiting import wait_until_async

HERE = Place(str(DIRECT))
POSTS = "POST /channels/{channel}/messages"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture
def server() -> Iterator[DiscordServer]:
    with DiscordServer.running() as running:
        yield running


@pytest.fixture
def discord(server: DiscordServer) -> Discord:
    return Discord(TOKEN, base=server.url)


async def connected(server: DiscordServer, sessions: int = 1) -> None:
    await wait_until_async(lambda: len(server.sessions) >= sessions and server.listeners)


async def test_slash_commands_are_acknowledged_at_once_and_heard_as_text(
    server: DiscordServer, discord: Discord
) -> None:
    """B1, B3: in a direct chat, in a channel and in a thread."""
    async with listening(discord) as ears:
        await connected(server)
        assert [each["name"] for each in server.commands] == ["background", "tasks"]
        assert [each["name"] for each in server.commands[0]["options"]] == ["text", "file"]
        ears.open.clear()
        number = server.commands_with("background", "count the files")
        await wait_until_async(lambda: server.acknowledged)
        assert not ears.heard
        ears.open.set()
        server.commands_with("tasks", channel=ROOM)
        server.commands_with("background", "x", channel=THREAD)
        first, second, third = [await ears.message(each) for each in (1, 2, 3)]
        assert (first.key, first.text, first.place) == (
            str(number),
            "/background count the files",
            HERE,
        )
        assert (first.person.id, first.person.name) == (str(ADA), "Ada")
        assert (second.text, second.place) == ("/tasks", Place(str(ROOM)))
        assert third.place == Place(str(ROOM), str(THREAD))
        await wait_until_async(lambda: len(server.forgotten) == 3)
        assert {each["type"] for each in server.acknowledged} == {5}


async def test_of_a_server_only_what_is_said_to_the_bot_is_heard(
    server: DiscordServer, discord: Discord
) -> None:
    async with listening(discord) as ears:
        await connected(server)
        server.says("lunch?", channel=ROOM)
        server.says("/bg from a bot", bot=True)
        server.says("from a webhook", webhook_id="5")
        server.says("somebody joined", type=7)
        server.edits_own("/bg once more")
        number = server.says("hello")
        server.says(f"<@{BOT}> /bg x", channel=ROOM)
        server.says(f"<@!{BOT}> what runs?", channel=THREAD)
        first, second, third = [await ears.message(each) for each in (1, 2, 3)]
        assert (first.text, first.key, first.place) == ("hello", str(number), HERE)
        assert (second.text, second.place) == ("/bg x", Place(str(ROOM)))
        assert (third.text, third.place) == ("what runs?", Place(str(ROOM), str(THREAD)))
        assert len(ears.heard) == 3


async def test_an_answer_goes_into_the_thread_it_was_asked_in(
    server: DiscordServer, discord: Discord
) -> None:
    """B5."""
    async with listening(discord):
        await connected(server)
        await discord.post(Place(str(ROOM), str(THREAD)), Post("k", "done"))
        await discord.post(Place(str(ROOM)), Post("k2", "done"))
    assert [each.channel for each in server.sent] == [THREAD, ROOM]


async def test_buttons_are_acknowledged_at_once_and_heard(
    server: DiscordServer, discord: Discord
) -> None:
    async with listening(discord) as ears:
        await connected(server)
        post = await discord.post(HERE, Post("k", "runs", (Button("Stop", "stop:bg_1"),)))
        assert server.sent[0].buttons == {"Stop": "stop:bg_1"}
        ears.open.clear()
        number = server.presses(server.sent[0], "stop:bg_1")
        await wait_until_async(lambda: server.acknowledged)
        assert server.acknowledged[0]["type"] == 6
        ears.open.set()
        press = await ears.press()
        assert (press.key, press.action, press.post_id) == (str(number), "stop:bg_1", post)
        assert (press.place, press.person.id) == (HERE, str(ADA))


def test_only_code_is_markup() -> None:
    """Hostile text is shown as it is, and an address can be followed."""
    assert worded("*a* _b_ `c*d` <@1> [x](y)") == r"\*a\* \_b\_ `c*d` \<@1> \[x\](y)"
    assert worded("# no heading\n - no list") == "\\# no heading\n \\- no list"
    assert worded("see https://a.b/c_d_e ok_") == "see https://a.b/c_d_e ok\\_"
    assert worded("```py\na```b\n```") == "```py\na`\u200b``b\n```"
    assert measured("[" * 200_000) == 400_000


async def test_a_post_mentions_nobody_and_shows_no_previews(
    server: DiscordServer, discord: Discord
) -> None:
    async with listening(discord):
        await connected(server)
        post = await discord.post(HERE, Post("k", "@everyone <@1001> http://a.b"))
        await discord.edit(HERE, post, Post("k", "@here"))
    for fields in (server.sent[0].fields, server.edits[0][1]):
        assert fields["allowed_mentions"] == {"parse": []}
    assert server.sent[0].fields["flags"] == 4


async def test_long_answers_are_within_the_limit_as_they_are_escaped(
    server: DiscordServer, discord: Discord
) -> None:
    async with listening(discord):
        await connected(server)
        for number, part in enumerate(cut("*_" * 1500 + "\n```\n" + "x" * 3000, discord.limits)):
            await discord.post(HERE, Post(f"k{number}", part))
    assert "".join(each.text for each in server.sent).replace("\\", "").count("*_") == 1500
    assert sum(each.text.count("x") for each in server.sent) == 3000


async def test_the_same_key_makes_one_message(server: DiscordServer, discord: Discord) -> None:
    """X1: also when the answer to the first was lost, and by another process."""
    async with listening(discord):
        await connected(server)
        server.spoil(POSTS, Fault(200, after=True))
        with pytest.raises(Later):
            await discord.post(HERE, Post("the key", "x"))
        await discord.post(HERE, Post("the key", "x"))
    again = Discord(TOKEN, base=server.url)
    async with listening(again):
        await connected(server, 2)
        await again.post(HERE, Post("the key", "x"))
    assert (len(server.sent), server.repeated) == (1, 2)


async def test_a_post_is_changed(server: DiscordServer, discord: Discord) -> None:
    async with listening(discord):
        await connected(server)
        post = await discord.post(HERE, Post("k", "1 of 3", (Button("Stop", "stop"),)))
        await discord.edit(HERE, post, Post("k", "3 of 3"))
        with pytest.raises(Refused):
            await discord.edit(HERE, "77", Post("k", "x"))
    number, fields = server.edits[0]
    assert (str(number), fields["content"], fields["components"]) == (post, "3 of 3", [])


async def test_files_go_both_ways(server: DiscordServer, discord: Discord) -> None:
    """B4, B5: within a size, and from where Discord keeps them only."""
    async with listening(discord) as ears:
        await connected(server)
        await discord.post(
            HERE, Post("k", "a plot", enclosure=Enclosure("p.png", "image/png", PNG))
        )
        small, large = attachment(server, "a.txt", b"hello"), attachment(server, "b", bytes(9000))
        stolen = {**small, "url": "http://127.0.0.1:9/x"}
        server.says("look", attachments=[small, large, stolen])
        uploads = (await ears.message()).uploads
        assert (uploads[0].name, uploads[0].media_type, uploads[0].size) == (
            "a.txt",
            "text/plain",
            5,
        )
        assert await uploads[0].fetch(1000) == b"hello"
        for upload in uploads[1:]:
            with pytest.raises(Refused):
                await upload.fetch(1000)
        resolved = {"attachments": {"1": small}}
        option = {"name": "file", "type": 11, "value": "1"}
        server.commands_with("background", "read it", resolved=resolved, options=[option])
        message = await ears.message(2)
        assert (message.text, message.uploads[0].name) == ("/background read it", "a.txt")
    assert server.sent[0].files == [("p.png", PNG)]
    assert server.sent[0].text == "a plot"


async def test_discords_wait_is_obeyed(server: DiscordServer, discord: Discord) -> None:
    """A short one by the library, a long one by who posts."""
    async with listening(discord):
        await connected(server)
        server.spoil(POSTS, Fault.wait(0.05), Fault.wait(70))
        with pytest.raises(Later) as later:
            await discord.post(HERE, Post("k", "x"))
    assert later.value.after_s == 70
    assert not server.sent


async def test_a_channel_that_is_gone_is_refused_and_a_network_that_is_away_is_for_later(
    server: DiscordServer, discord: Discord
) -> None:
    """B6."""
    with pytest.raises(Later):
        await discord.post(HERE, Post("k", "before anybody listens"))
    async with listening(discord):
        await connected(server)
        gone = Fault(404, {"message": "Unknown Channel", "code": 10003})
        server.spoil(POSTS, gone, Fault(403, {"message": "Missing Access"}), Fault(503))
        with pytest.raises(Refused, match="Unknown Channel"):
            await discord.post(HERE, Post("k", "x"))
        with pytest.raises(Refused, match="Missing Access"):
            await discord.post(HERE, Post("k", "x"))
        with pytest.raises(Later):
            await discord.post(HERE, Post("k", "x"))
        with pytest.raises(Refused):
            await discord.post(Place("not a number"), Post("k", "x"))
        server.go_away()
        with pytest.raises(Later):
            await discord.post(HERE, Post("k", "x"))


async def test_a_lost_connection_is_resumed_and_nothing_is_missed(
    server: DiscordServer, discord: Discord
) -> None:
    async with listening(discord) as ears:
        await connected(server)
        server.says("one")
        await ears.message()
        server.cut_socket()
        server.says("two")
        assert (await ears.message(2)).text == "two"
        await wait_until_async(lambda: server.listeners)
        server.says("three")
        assert (await ears.message(3)).text == "three"
    assert server.resumed == 1
    assert len(ears.heard) == 3


@pytest.mark.slow  # the library waits five seconds before it identifies again
async def test_a_session_that_is_gone_is_begun_anew(
    server: DiscordServer, discord: Discord
) -> None:
    async with listening(discord) as ears:
        await connected(server)
        server.do(_forget_sessions(server))
        await connected(server)
        server.says("after")
        assert (await ears.message()).text == "after"


async def test_what_the_library_cannot_read_does_not_end_us(
    server: DiscordServer, discord: Discord, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(discord) as ears:
        await connected(server)
        server.tells("MESSAGE_CREATE", {"id": "1", "channel_id": "2", "content": "no more of it"})
        await connected(server, 2)
        server.says("after")
        assert (await ears.message()).text == "after"
    assert "Traceback" not in caplog.text


async def test_a_wrong_token_is_one_clear_line(server: DiscordServer) -> None:
    with pytest.raises(BadCredentials) as bad:
        await Discord("wrong-secret", base=server.url).listen(_hear, ())
    assert "DISCORD_BOT_TOKEN" in str(bad.value)
    assert "wrong-secret" not in str(bad.value)


@pytest.mark.parametrize(("code", "says"), [(4014, "MESSAGE CONTENT INTENT"), (4004, "TOKEN")])
async def test_what_has_to_be_ticked_is_said(
    server: DiscordServer, discord: Discord, code: int, says: str
) -> None:
    server.refuse_with = code
    with pytest.raises(BadCredentials, match=says):
        await discord.listen(_hear, ())


async def test_a_server_that_is_away_at_the_start_is_waited_for(
    server: DiscordServer, discord: Discord, caplog: pytest.LogCaptureFixture
) -> None:
    server.go_away()
    async with listening(discord) as ears:
        await wait_until_async(lambda: "not to be reached" in caplog.text)
        server.come_back()
        await connected(server)
        server.says("hello")
        assert (await ears.message()).text == "hello"
    assert "Traceback" not in caplog.text


async def test_no_log_and_no_error_says_the_token(
    server: DiscordServer, discord: Discord, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with listening(discord) as ears:
        await connected(server)
        server.commands_with("tasks")
        await ears.message()
        server.cut_socket()
        await wait_until_async(lambda: server.resumed)
    assert TOKEN not in caplog.text
    assert "interaction-token" not in caplog.text


async def _forget_sessions(server: DiscordServer) -> None:
    gone = list(server.sessions)
    server.sessions.clear()
    for session in gone:
        await session.cut(4000)


async def _hear(heard: object) -> None:
    raise AssertionError(heard)
