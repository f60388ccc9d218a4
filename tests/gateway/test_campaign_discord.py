"""The campaign of kills with the real program and Discord's library, as Discord's server counts."""

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.model.signals import OPEN
from backburner.model.task import Task
from backburner.store.protocol import Scope
from tests.cli.program import COMMAND
from tests.gateway.discord_server import ADA, DIRECT, ROOM, THREAD, TOKEN, DiscordServer
from tests.waiting import pause_async, wait_until_async

OWNER = Scope(f"discord:{ADA}")
LONGEST_LIFE_S = 2.0
"""Of a gateway, from when it is connected: a few commands, and some of their ends."""


@pytest.fixture
def discord(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DiscordServer]:
    """Discord, as the environment names it."""
    with DiscordServer.running() as server:
        monkeypatch.setenv("DISCORD_BOT_TOKEN", TOKEN)
        monkeypatch.setenv("BACKBURNER_DISCORD_URL", server.url)
        monkeypatch.setenv("BACKBURNER_DELIVERY_RETRY_S", "0.05")
        yield server


@contextlib.asynccontextmanager
async def gateway(discord: DiscordServer, log: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A gateway that has connected; killed at the end, where it has not ended by then."""
    before = len(discord.sessions)
    options = ["--allow", str(ADA), "--shell", "--agent", "echo"]
    with log.open("ab") as said:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, "gateway", "discord", *options, stderr=said
        )
    try:
        await wait_until_async(
            lambda: len(discord.sessions) > before or process.returncode is not None,
            timeout=60,
            message=lambda: f"it does not connect: {log.read_text()[-3000:]}",
        )
        assert process.returncode is None, log.read_text()[-3000:]
        yield process
        assert process.returncode is None, log.read_text()[-3000:]
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def one_life(discord: DiscordServer, log: Path, number: int, chance: random.Random) -> None:
    """A gateway that hears of new work and is killed at some moment."""
    async with gateway(discord, log):
        discord.commands_with("bg", f"answer {number}", channel=chance.choice((ROOM, THREAD)))
        discord.says(f"#!bg\nsleep 0.{chance.randrange(9)}; echo job {number}", channel=DIRECT)
        life = chance.random() * LONGEST_LIFE_S
        await pause_async(life, because="the kill comes at a random moment")


async def until_all_is_told(discord: DiscordServer, log: Path) -> list[Task]:
    """One more gateway, which is let live until nothing is left. Answers all tasks."""
    async with gateway(discord, log), Backburner.open() as backburner:
        store = backburner.store

        async def quiet() -> bool:
            if await store.any_active() or await store.signals(OWNER, states=OPEN):
                return False
            tasks = await store.newest(OWNER, limit=1000)
            shown = {one for each in discord.sent for one in ids_in(each.text)}
            return {task.id for task in tasks} <= shown and not buttons(discord)

        await wait_until_async(
            quiet,
            timeout=600,  # a post a second in each place, as real ones want it
            message=lambda: f"buttons of {buttons(discord)} are left, or something is untold",
        )
        return await store.newest(OWNER, limit=1000)


def ids_in(text: str) -> list[str]:
    """Ids of tasks; Discord is told that the underscore is no markup."""
    return re.findall(r"bg_[0-9a-z]{16}", text.replace("\\_", "_"))


def buttons(discord: DiscordServer) -> set[int]:
    """Posts that have buttons now."""
    having = {each.id for each in discord.sent if each.buttons}
    for number, fields in discord.edits:
        (having.add if fields["components"] else having.discard)(number)
    return having


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(100, marks=[pytest.mark.faults, pytest.mark.timeout(1800)]),
    ],
)
async def test_killed_at_random_moments_every_end_is_told_once_on_discord(
    discord: DiscordServer, tmp_path: Path, rounds: int
) -> None:
    """X1, B9. What Discord tells of while nobody listens is lost, as it is there: whatever was

    heard has a task, and each of those is answered once and told of once.
    """
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for number in range(rounds):
        await one_life(discord, tmp_path / "log", number, chance)
    tasks = await until_all_is_told(discord, tmp_path / "log")
    texts = [each.text for each in discord.sent]
    starts = [one for text in texts if text.startswith("Started") for one in ids_in(text)]
    told = "\n".join(text for text in texts if not text.startswith("Started"))
    # The head of an answer, or a line of a list.
    ends = [one for line in told.splitlines() if line[:1] in "✅❌" for one in ids_in(line)[:1]]
    left_out = sum(map(int, re.findall(r"^and (\d+) more", told, re.MULTILINE)))
    ids = sorted(task.id for task in tasks)
    assert ids, f"seed {seed}: something was heard"
    assert sorted(starts) == ids, f"seed {seed}"
    assert len(ends) == len(set(ends)), f"seed {seed}: none is told twice"
    assert set(ends) <= set(ids), f"seed {seed}"
    assert len(ends) + left_out == len(ids), f"seed {seed}: every end is told"
