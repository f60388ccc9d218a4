"""The campaign of kills with the real program and Slack's library, as Slack's server counts."""

import random
import re
from pathlib import Path

import pytest

from tests.gateway.slack_server import SlackServer
from tests.gateway.test_platforms import ANSWER, Chat, gateway, on_slack
from tests.waiting import pause_async, wait_until_async

LONGEST_LIFE_S = 2.0
"""Of a gateway, from when it is connected."""


async def campaign(chat: Chat, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(rounds):
        async with gateway(chat) as process:
            await wait_until_async(chat.connected)
            chat.write(f"/background number {number}.")
            life = chance.random() * LONGEST_LIFE_S
            await pause_async(life, because="the kill comes at a random moment")
            process.kill()
            await process.wait()
        await wait_until_async(lambda: not chat.connected())
    async with gateway(chat):
        await wait_until_async(chat.connected)  # else it is asked to leave before it has begun
        for number in range(rounds):
            await chat.shows(ANSWER, f"number {number}.")
        await wait_until_async(lambda: not any(each.buttons for each in chat.posts()))
    started = chat.showing("Started in the background")
    ids = [re.findall(r"bg_\w{16}", each.text)[0] for each in started]
    assert len(ids) == len(set(ids)) == rounds, f"seed {seed}: every command is answered once"
    for each in ids:
        assert len(chat.showing(ANSWER, each)) == 1, f"seed {seed}: every end is told once"


@pytest.mark.faults
@pytest.mark.timeout(1800)
async def test_killed_at_random_moments_every_answer_comes_once_on_slack(home: Path) -> None:
    """X1, B9: what was not acknowledged is told again, and what was posted is found by its key."""
    with SlackServer.running() as server:
        await campaign(on_slack(server), 30, random.randrange(2**32))
