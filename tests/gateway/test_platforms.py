"""`backburner gateway` on each platform, from the command line to the chat and back (B1–B9, X1).

Real processes, the platforms' real libraries, and servers that speak their protocols and count.
"""

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.gateway.platforms import platform
from backburner.model.errors import UsageError
from tests.gateway import discord_server, slack_server, telegram_server
from tests.gateway.discord_server import DiscordServer
from tests.gateway.slack_server import SlackServer
from tests.gateway.telegram_server import TelegramServer
from tests.waiting import wait_until_async

ANSWER = "✅ Background task complete"


@dataclass(frozen=True, slots=True)
class Shown:
    """A post, as it stands now."""

    text: str
    buttons: dict[str, str]
    where: object
    press: Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Chat:
    """A thread of one platform, with Ada in it."""

    name: str
    owner: str
    session: str
    where: object
    environ: dict[str, str]
    write: Callable[[str], object]
    stranger: Callable[[str], object]
    connected: Callable[[], bool]
    posts: Callable[[], list[Shown]]

    def showing(self, *texts: str) -> list[Shown]:
        """The posts that have all of these in them."""
        return [each for each in self.posts() if all(text in each.text for text in texts)]

    async def shows(self, *texts: str) -> Shown:
        """One of them, once it is there."""
        return await wait_until_async(
            lambda: next(iter(self.showing(*texts)), None),
            message=lambda: f"no post with {texts} among {[each.text for each in self.posts()]}",
        )


def on_telegram(server: TelegramServer) -> Chat:
    def posts() -> list[Shown]:
        changed = {int(each["message_id"]): each for each in server.edits}
        return [
            Shown(
                changed.get(each.id, each.fields).get("text", ""),
                telegram_server.buttons_of(changed.get(each.id, each.fields)),
                (each.chat, each.fields.get("message_thread_id")),
                lambda action, each=each: server.presses(each, action),
            )
            for each in server.sent
        ]

    def write(text: str, user: int = telegram_server.ADA) -> None:
        said = text if text.startswith("/") else f"@{telegram_server.BOT_NAME} {text}"
        server.says(said, chat=-100, thread=7, user=user)

    return Chat(
        "telegram",
        f"telegram:{telegram_server.ADA}",
        "telegram:-100/7",
        (-100, "7"),
        {"TELEGRAM_BOT_TOKEN": telegram_server.TOKEN, "BACKBURNER_TELEGRAM_URL": server.url},
        write,
        lambda text: write(text, 666),
        lambda: server.polls > 0,
        posts,
    )


def on_discord(server: DiscordServer) -> Chat:
    def posts() -> list[Shown]:
        changed = dict(server.edits)
        return [
            Shown(
                re.sub(r"\\(.)", r"\1", changed.get(each.id, each.fields).get("content") or ""),
                discord_server.buttons_of(changed.get(each.id, each.fields)),
                each.channel,
                lambda action, each=each: server.presses(each, action),
            )
            for each in server.sent
        ]

    def write(text: str) -> None:
        if text.startswith("/"):
            name, _, rest = text[1:].partition(" ")
            server.commands_with(name, rest, channel=discord_server.THREAD)
        else:
            server.says(f"<@{discord_server.BOT}> {text}", channel=discord_server.THREAD)

    return Chat(
        "discord",
        f"discord:{discord_server.ADA}",
        f"discord:{discord_server.ROOM}/{discord_server.THREAD}",
        discord_server.THREAD,
        {"DISCORD_BOT_TOKEN": discord_server.TOKEN, "BACKBURNER_DISCORD_URL": server.url},
        write,
        lambda text: server.says(f"<@{discord_server.BOT}> {text}", channel=7001, user=666),
        lambda: server.listeners > 0,
        posts,
    )


def on_slack(server: SlackServer) -> Chat:
    def posts() -> list[Shown]:
        changed = {each["ts"]: each for each in server.edits}
        return [
            Shown(
                changed.get(each.ts, each.fields).get("text", ""),
                slack_server.buttons_of(changed.get(each.ts, each.fields)),
                (each.channel, each.thread),
                lambda action, each=each: server.tells(server.press(each, action)),
            )
            for each in server.sent
        ]

    def write(text: str, user: str = slack_server.ADA) -> None:
        said = f"<@{slack_server.BOT}> {text}"
        server.says(said, channel=slack_server.ROOM, thread_ts="5.1", user=user)

    return Chat(
        "slack",
        f"slack:{slack_server.ADA}",
        f"slack:{slack_server.ROOM}/5.1",
        (slack_server.ROOM, "5.1"),
        {
            "SLACK_BOT_TOKEN": slack_server.TOKEN,
            "SLACK_APP_TOKEN": slack_server.APP_TOKEN,
            "BACKBURNER_SLACK_URL": server.url,
        },
        write,
        lambda text: write(text, "U666"),
        lambda: server.listeners > 0,
        posts,
    )


@pytest.fixture(params=["telegram", "discord", "slack"])
def chat(request: pytest.FixtureRequest) -> Iterator[Chat]:
    match request.param:
        case "telegram":
            with TelegramServer.running() as telegram:
                yield on_telegram(telegram)
        case "discord":
            with DiscordServer.running() as discord:
                yield on_discord(discord)
        case _:
            with SlackServer.running() as slack:
                yield on_slack(slack)


@contextlib.asynccontextmanager
async def gateway(chat: Chat) -> AsyncGenerator[asyncio.subprocess.Process]:
    """The real command, until the block ends."""
    process = await _start(chat)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        _, said = await process.communicate()
        assert b"Traceback" not in said, said.decode()
        secret = next(iter(chat.environ.values()))
        assert secret.encode() not in said


async def _start(chat: Chat) -> asyncio.subprocess.Process:
    user = chat.owner.partition(":")[2]
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backburner.cli", "gateway", chat.name,
        "--allow", user, "--shell", "--agent", "echo",
        env={**os.environ, **chat.environ, "BACKBURNER_DELIVERY_RETRY_S": "0.05"},
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.slow
async def test_from_a_command_to_its_answer_in_the_same_thread(chat: Chat, home: Path) -> None:
    """B1–B5, B8, B9: commands, buttons, strangers, and a second gateway by mistake."""
    async with gateway(chat):
        await wait_until_async(chat.connected)
        chat.stranger("/tasks")
        chat.write("/background say `hello`")
        started = await chat.shows("Started in the background")
        lines = started.text.splitlines()
        assert re.fullmatch(r"bg_\w{16}", lines[lines.index("Task ID:") + 1])
        await chat.shows(ANSWER, "hello")

        second = await _start(chat)  # by mistake
        _, said = await second.communicate()
        assert second.returncode != 0
        assert b"Traceback" not in said
        assert chat.name.encode() in said

        chat.write("#!bg\nsleep 600")
        running = await wait_until_async(
            lambda: next((each for each in chat.showing("sleep 600") if each.buttons), None)
        )
        stop = next(action for label, action in running.buttons.items() if "Stop" in label)
        running.press(stop)
        await wait_until_async(
            lambda: not any(each.buttons for each in chat.showing("sleep 600")),
            message=lambda: str(chat.posts()),
        )
        chat.write("/tasks")
        await chat.shows("sleep 600", "say")
        assert len(chat.showing(ANSWER, "hello")) == 1
        assert {each.where for each in chat.posts()} == {chat.where}


@pytest.mark.slow
async def test_an_answer_outlives_a_gateway_that_was_killed(
    chat: Chat, home: Path, tmp_path: Path
) -> None:
    """B9, X1: killed between the start of a task and its end, the next one tells it, once."""
    go = tmp_path / "go"
    async with gateway(chat) as first:
        await wait_until_async(chat.connected)
        chat.write(f"#!bg\nwhile [ ! -e {go} ]; do sleep 0.05; done; echo all done")
        started = await chat.shows("Started in the background")
        chat.write("/whoami")  # posts are made one after the other: the first is noted then, and
        await chat.shows("Your id")  # Telegram, which knows no keys, does not get it twice
        first.kill()
        await first.wait()
    task = re.findall(r"bg_\w{16}", started.text)[0]
    async with Backburner.open() as backburner:
        go.touch()
        session = backburner.session(chat.session, owner=chat.owner)
        await (await session.task(task)).wait(30)
    assert not chat.showing(ANSWER)
    async with gateway(chat):
        await chat.shows(ANSWER, "all done")
        await wait_until_async(lambda: not any(each.buttons for each in chat.posts()))
        chat.write("/tasks")
        await chat.shows(f"✅ {task}")
    assert len(chat.showing(ANSWER)) == 1


HTTP = {"SLACK_BOT_TOKEN": "x", "SLACK_SIGNING_SECRET": "y"}


@pytest.mark.parametrize(
    ("name", "environ", "missing"),
    [
        ("telegram", {}, "TELEGRAM_BOT_TOKEN"),
        ("discord", {"DISCORD_BOT_TOKEN": " "}, "DISCORD_BOT_TOKEN"),
        ("slack", {}, "SLACK_BOT_TOKEN"),
        ("slack", {"SLACK_BOT_TOKEN": "x"}, "SLACK_APP_TOKEN"),
        (
            "slack",
            {"SLACK_BOT_TOKEN": "x", "SLACK_SIGNING_SECRET": "x", "SLACK_PORT": "no"},
            "PORT",
        ),
        ("irc", {}, "telegram, discord, slack"),
    ],
)
def test_what_is_missing_is_named_with_where_to_get_it(
    name: str, environ: dict[str, str], missing: str
) -> None:
    with pytest.raises(UsageError, match=missing):
        platform(name, environ)


def test_slack_over_http_needs_no_app_token() -> None:
    assert platform("slack", HTTP).name == "slack"
