"""kill -9 of the real gateway on the platforms that know a post by its key: nothing comes twice.

As their servers count, through the platforms' real libraries (X1, B9). What is written is written
while somebody listens: Discord tells nothing to who was away.
"""

import random
import re
from pathlib import Path

import pytest

from tests.gateway.discord_server import DiscordServer
from tests.gateway.slack_server import SlackServer
from tests.gateway.test_platforms import ANSWER, Chat, gateway, on_discord, on_slack
from tests.waiting import pause_async, wait_until_async

LONGEST_LIFE_S = 2.0


async def campaign(chat: Chat, rounds: int, seed: int, *, told_again: bool) -> None:
    """With `told_again`, the platform tells again what a killed gateway had not heard."""
    chance = random.Random(seed)
    for number in range(rounds):
        async with gateway(chat) as process:
            await wait_until_async(chat.connected)
            chat.write(f"/background number {number}.")
            await pause_async(
                chance.random() * LONGEST_LIFE_S, because="the kill comes at a random moment"
            )
            process.kill()
            await process.wait()
        await wait_until_async(lambda: not chat.connected())
    async with gateway(chat):
        for number in range(rounds):
            if told_again or chat.showing("Started in the background", f"number {number}."):
                await chat.shows(ANSWER, f"number {number}.")
        await wait_until_async(lambda: not any(each.buttons for each in chat.posts()))
    ids = [
        re.findall(r"bg_\w{16}", each.text)[0] for each in chat.showing("Started in the background")
    ]
    assert ids, f"seed {seed}"
    assert not told_again or len(ids) == rounds, f"seed {seed}: every command is heard"
    assert len(ids) == len(set(ids)), f"seed {seed}: a start is answered once"
    for each in ids:
        assert len(chat.showing(ANSWER, each)) == 1, f"seed {seed}: told once"


@pytest.mark.faults
@pytest.mark.timeout(900)
async def test_discord_shows_every_answer_once(home: Path) -> None:
    with DiscordServer.running() as server:
        await campaign(on_discord(server), 30, random.randrange(2**32), told_again=False)


@pytest.mark.faults
@pytest.mark.timeout(900)
async def test_slack_shows_every_answer_once(home: Path) -> None:
    with SlackServer.running() as server:
        await campaign(on_slack(server), 30, random.randrange(2**32), told_again=True)
