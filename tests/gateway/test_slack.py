"""Slack through its real library (B3, B5, B6), against a server that speaks its protocols."""

import asyncio
import logging
import re
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from backburner.gateway.commands import COMMANDS
from backburner.gateway.platform import (
    BadCredentials,
    Button,
    Enclosure,
    Later,
    Place,
    Post,
    Refused,
)
from backburner.gateway.slack.adapter import Slack
from backburner.gateway.slack.doors import Requests, Socket
from backburner.gateway.slack.wording import measured, unmarked, worded
from backburner.gateway.splitting import cut
from tests.conftest import REPOSITORY
from tests.gateway.listening import listening
from tests.gateway.slack_server import (
    ADA,
    APP_TOKEN,
    BOT,
    DIRECT,
    ROOM,
    SIGNING_SECRET,
    TOKEN,
    Fault,
    SlackServer,
)
from tests.ports import free_port
from tests.waiting import wait_until_async

HERE = Place(DIRECT)


@pytest.fixture
def server() -> Iterator[SlackServer]:
    with SlackServer.running() as running:
        yield running


@pytest.fixture
def slack(server: SlackServer) -> Slack:
    return Slack(TOKEN, Socket(APP_TOKEN, ping_s=0.5), base=server.url)


async def connected(server: SlackServer, connections: int = 1) -> None:
    await wait_until_async(lambda: server.connections >= connections and server.listeners)


async def test_slash_commands_are_heard_as_text(server: SlackServer, slack: Slack) -> None:
    """B1, B3."""
    async with listening(slack) as ears:
        await connected(server)
        command = server.command("/bg", "count &lt;all&gt; files", channel=ROOM)
        server.tells(command)
        message = await ears.message()
        assert (message.text, message.place) == ("/bg count <all> files", Place(ROOM))
        assert (message.key, message.person.id) == (command["trigger_id"], ADA)
        await wait_until_async(lambda: not server.unacknowledged)


async def test_a_command_is_acknowledged_within_three_seconds_whatever_happens(
    server: SlackServer, slack: Slack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backburner.gateway.slack.doors._ACKNOWLEDGE_BY_S", 0.05)
    async with listening(slack) as ears:
        await connected(server)
        ears.open.clear()
        server.tells(server.command("/tasks"))
        await wait_until_async(lambda: not server.unacknowledged)
        assert not ears.heard
        ears.open.set()
        assert (await ears.message()).text == "/tasks"


async def test_of_a_channel_only_what_is_said_to_the_bot_is_heard(
    server: SlackServer, slack: Slack
) -> None:
    async with listening(slack) as ears:
        await connected(server)
        server.says("lunch?", channel=ROOM)
        server.says("from a bot", bot_id="B2")
        server.says("from ourselves", user=BOT)
        server.says("anew", subtype="message_changed")
        server.tells({"type": "event_callback", "event": {"type": "message"}, "team_id": "T1"})
        said = server.message("hello &amp; <https://a.b|here>")
        server.tells(said)
        server.says(f"<@{BOT}> /bg x", channel=ROOM, ts="5.1")
        server.says(f"and <@{BOT}> now?", channel=ROOM, ts="5.2", thread_ts="5.1")
        server.says("yes", channel=ROOM, ts="6.2", thread_ts="6.1", parent_user_id=BOT)
        messages = [await ears.message(each) for each in (1, 2, 3, 4)]
        assert [each.text for each in messages] == [
            "hello & https://a.b",
            "/bg x",
            f"and @{BOT} now?",
            "yes",
        ]
        assert [each.place for each in messages] == [
            HERE,
            Place(ROOM, "5.1"),
            Place(ROOM, "5.1"),
            Place(ROOM, "6.1"),
        ]
        assert messages[0].key == f"{DIRECT}:{said['event']['ts']}"
        await wait_until_async(lambda: not server.unacknowledged)
        assert len(ears.heard) == 4


async def test_an_answer_goes_into_the_thread_it_was_asked_in(
    server: SlackServer, slack: Slack
) -> None:
    """B5."""
    async with listening(slack):
        await connected(server)
        await slack.post(Place(ROOM, "5.1"), Post("k", "done"))
        await slack.post(HERE, Post("k", "done"))
    assert [(each.channel, each.thread) for each in server.sent] == [(ROOM, "5.1"), (DIRECT, None)]


async def test_buttons_are_heard(server: SlackServer, slack: Slack) -> None:
    async with listening(slack) as ears:
        await connected(server)
        where = Place(ROOM, "5.1")
        post = await slack.post(where, Post("k", "runs", (Button("Stop", "stop:bg_1"),)))
        assert server.sent[0].buttons == {"Stop": "stop:bg_1"}
        server.tells(server.press(server.sent[0], "stop:bg_1"))
        press = await ears.press()
        assert (press.action, press.post_id, press.place) == ("stop:bg_1", post, where)
        assert press.person.id == ADA
        await wait_until_async(lambda: not server.unacknowledged)


def test_a_post_says_what_it_says_and_mentions_nobody() -> None:
    assert worded("<!channel> & `<@U1>`") == "&lt;!channel&gt; &amp; `&lt;@U1&gt;`"
    assert worded("```sh\na < b ``` c\n```") == "```\na &lt; b `\u200b`` c\n```"
    assert unmarked("<@U1> <#C1|room> <!here> <mailto:a@b|a@b> &lt;x&gt;") == (
        "@U1 #room @here a@b <x>"
    )
    assert measured("&" * 10) == 50


async def test_no_link_is_unfurled_and_long_answers_fit(server: SlackServer, slack: Slack) -> None:
    button = (Button("Stop", "stop"),)
    async with listening(slack):
        await connected(server)
        for number, part in enumerate(cut("<&>" * 2000, slack.limits)):
            await slack.post(HERE, Post(f"k{number}", part, button))
    assert "".join(each.text for each in server.sent) == "&lt;&amp;&gt;" * 2000
    fields = server.sent[0].fields
    assert {fields[each] for each in ("unfurl_links", "unfurl_media", "link_names")} == {"false"}


async def test_the_same_key_makes_one_message(server: SlackServer, slack: Slack) -> None:
    """X1: also when the answer to the first was lost, and by another process."""
    where = Place(ROOM, "5.1")
    async with listening(slack):
        await connected(server)
        for number in range(30):
            await slack.post(where, Post(f"earlier {number}", "x"))
        assert server.calls.count("conversations.replies") == 1
        server.spoil("chat.postMessage", Fault(after=True), Fault("internal_error"))
        with pytest.raises(Later):
            await slack.post(where, Post("the key", "x"))
        post = await slack.post(where, Post("the key", "x"))
        with pytest.raises(Later):
            await slack.post(where, Post("another", "x"))
    again = Slack(TOKEN, Socket(APP_TOKEN), base=server.url)
    async with listening(again):
        await connected(server, 2)
        assert await again.post(where, Post("the key", "x")) == post
    assert len(server.sent) == 31


async def test_a_post_is_changed(server: SlackServer, slack: Slack) -> None:
    async with listening(slack):
        await connected(server)
        post = await slack.post(HERE, Post("k", "1 of 3", (Button("Stop", "stop"),)))
        await slack.edit(HERE, post, Post("k", "3 of 3"))
        with pytest.raises(Refused):
            await slack.edit(HERE, "7.7", Post("k", "x"))
    edit = server.edits[0]
    assert (edit["ts"], edit["text"], edit["blocks"]) == (post, "3 of 3", [])


async def test_files_go_both_ways(server: SlackServer, slack: Slack) -> None:
    """B4, B5: once for a key, within a size, and the token goes to Slack only."""
    server.files = {"a.txt": b"hello", "large": bytes(9000)}
    async with listening(slack) as ears:
        await connected(server)
        enclosure = Enclosure("plot.png", "image/png", b"png")
        for _ in range(2):
            await slack.post(HERE, Post("k", "a plot", enclosure=enclosure))
        alone = await slack.post(HERE, Post("k2", "", enclosure=enclosure))
        with pytest.raises(Refused):
            await slack.edit(HERE, alone, Post("k2", "x"))
        files = [
            {"name": name, "mimetype": "text/plain", "url_private_download": address}
            for name, address in (
                ("a.txt", f"{server.url}/files/a.txt"),
                ("large", f"{server.url}/files/large"),
                ("stolen", "http://127.0.0.1:9/x"),
            )
        ]
        server.says("look", subtype="file_share", files=files)
        uploads = (await ears.message()).uploads
        assert (uploads[0].name, uploads[0].media_type) == ("a.txt", "text/plain")
        assert await uploads[0].fetch(1000) == b"hello"
        for upload in uploads[1:]:
            with pytest.raises(Refused):
                await upload.fetch(1000)
    again = Slack(TOKEN, Socket(APP_TOKEN), base=server.url)
    async with listening(again):
        await connected(server, 2)
        await again.post(HERE, Post("k", "a plot", enclosure=enclosure))
    assert [each.text for each in server.sent] == ["a plot", "", ""]
    assert [each.files[0]["title"] for each in server.sent[1:]] == ["plot.png", "plot.png"]
    assert {data for _, data in server.uploaded.values()} == {b"png"}


async def test_slacks_wait_is_obeyed(server: SlackServer, slack: Slack) -> None:
    async with listening(slack):
        await connected(server)
        server.spoil("chat.postMessage", Fault.wait(17))
        with pytest.raises(Later) as later:
            await slack.post(HERE, Post("k", "x"))
    assert later.value.after_s == 17


async def test_a_channel_that_is_gone_is_refused_and_a_network_that_is_away_is_for_later(
    server: SlackServer, slack: Slack
) -> None:
    """B6."""
    with pytest.raises(Later):
        await slack.post(HERE, Post("k", "before anybody listens"))
    async with listening(slack):
        await connected(server)
        server.spoil("chat.postMessage", Fault("is_archived"), Fault(status=503))
        with pytest.raises(Refused, match="archived"):
            await slack.post(HERE, Post("k", "x"))
        with pytest.raises(Later):
            await slack.post(HERE, Post("k", "x"))
        server.spoil("conversations.history", Fault("not_in_channel"))
        with pytest.raises(Refused, match="invite"):
            await slack.post(Place("C9"), Post("k", "x"))
        server.go_away()
        with pytest.raises(Later):
            await slack.post(HERE, Post("k", "x"))
        server.come_back()
        await connected(server, 2)


async def test_what_was_not_acknowledged_is_told_again(server: SlackServer, slack: Slack) -> None:
    """B9: over a new connection, after a disconnect and after a restart."""
    async with listening(slack) as ears:
        await connected(server)
        ears.open.clear()
        said = server.message("one")
        server.tells(said)
        server.cut_socket()
        await connected(server, 2)
    async with listening(slack) as ears:
        assert (await ears.message()).key == f"{DIRECT}:{said['event']['ts']}"
        await wait_until_async(lambda: not server.unacknowledged)


async def test_a_socket_is_replaced_when_slack_asks_for_it(
    server: SlackServer, slack: Slack
) -> None:
    async with listening(slack) as ears:
        await connected(server)
        server.asks_to_refresh()
        await connected(server, 2)
        server.says("after")
        assert (await ears.message()).text == "after"


async def test_events_over_http_are_heard_when_slack_has_signed_them(
    server: SlackServer,
) -> None:
    port = free_port()
    slack = Slack(TOKEN, Requests(SIGNING_SECRET, port), base=server.url)
    async with listening(slack) as ears:
        await wait_until_async(lambda: _answers(port))
        said = server.message("hello")
        assert (await _told(server, port, said, secret="another"))[0] == 401
        challenge = {"type": "url_verification", "challenge": "abc"}
        assert "abc" in (await _told(server, port, challenge))[1]
        for body in (said, server.command("/bg", "x"), server.message(f"<@{BOT}>x", channel=ROOM)):
            assert (await _told(server, port, body))[0] == 200
        assert [(await ears.message(each)).text for each in (1, 2, 3)] == ["hello", "/bg x", "x"]
        await slack.post(HERE, Post("k", "runs", (Button("Stop", "s"),)))
        await _told(server, port, server.press(server.sent[0], "s"))
        assert (await ears.press(4)).action == "s"


@pytest.mark.parametrize(
    ("token", "app_token"), [("xoxb-wrong-secret", APP_TOKEN), (TOKEN, "xapp-wrong-secret")]
)
async def test_a_wrong_token_is_one_clear_line(
    server: SlackServer, token: str, app_token: str
) -> None:
    with pytest.raises(BadCredentials) as bad:
        await Slack(token, Socket(app_token), base=server.url).listen(_hear, ())
    assert "SLACK_APP_TOKEN" in str(bad.value)
    assert "wrong-secret" not in str(bad.value)


async def test_no_log_and_no_error_says_a_token(
    server: SlackServer, slack: Slack, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with listening(slack) as ears:
        await connected(server)
        server.says("hello")
        await ears.message()
        server.go_away()
        await wait_until_async(lambda: "adapter.library" in caplog.text)
        server.come_back()
        await connected(server, 2)
    for secret in (TOKEN, APP_TOKEN, "s3cret-ticket"):
        assert secret not in caplog.text
    assert "Traceback" not in caplog.text


def test_the_manifest_in_the_docs_has_the_commands_that_there_are() -> None:
    """B8: but /help, which is written to the bot, and another name of /whoami."""
    manifest = (REPOSITORY / "docs" / "slack.md").read_text()
    named = set(re.findall(r"command: /(\w+)", manifest))
    assert named == {each.name for each in COMMANDS.menu()} - {"help", "start"}


async def _answers(port: int) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/"):
            return True
    except aiohttp.ClientError:
        return False


async def _told(
    server: SlackServer, port: int, body: dict[str, Any], *, secret: str = SIGNING_SECRET
) -> tuple[int, str]:
    """In a thread: the answer waits for this event loop."""
    return await asyncio.to_thread(server.requests, port, body, secret=secret)


async def _hear(heard: object) -> None:
    raise AssertionError(heard)
