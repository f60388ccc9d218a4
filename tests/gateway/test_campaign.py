"""kill -9 of the gateway at random moments, while tasks end: every answer arrives, none twice."""

import asyncio
import os
import random
import re
import signal
import sys
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.model.signals import OPEN
from backburner.store.protocol import Scope
from tests.conftest import REPOSITORY
from tests.gateway.chat_server import ChatServer
from tests.waiting import pause_async, wait_until_async

ADA = Scope("line:ada")
CHATS = ("c1", "c2")
LONGEST_LIFE_S = 1.5
"""Of a gateway: its start, a few commands, and some of their ends."""


async def one_life(chat: ChatServer, number: int, chance: random.Random) -> None:
    """A gateway that hears of new work and is killed at some moment."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.gateway.gateway_program", chat.path, "echo",
        cwd=REPOSITORY, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        chat.write(f"/bg answer {number}", chat=chance.choice(CHATS))
        chat.write(f"#!bg\nsleep 0.{chance.randrange(9)}; echo job {number}", chat=CHATS[0])
        begun = await wait_until_async(lambda: chat.connected or process.returncode is not None)
        assert begun
        assert process.returncode is None, await _said(process)
        life = chance.random() * LONGEST_LIFE_S
        await pause_async(life, because="the kill comes at a random moment")
        assert process.returncode is None, await _said(process)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()
    await wait_until_async(lambda: not chat.connected)


async def _said(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    return (await process.stderr.read()).decode()


def starts(chat: ChatServer) -> list[str]:
    return [each.text for each in chat.posts if each.text.startswith("Started in the background")]


async def until_all_is_told(chat: ChatServer, asked: int) -> None:
    """One more gateway, which is let live until all that was asked for is answered, and nothing is

    left to tell.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.gateway.gateway_program", chat.path, "echo", cwd=REPOSITORY
    )
    try:
        async with Backburner.open() as backburner:

            async def quiet() -> bool:
                # What a dead one has heard is still to be begun, and is in no record yet.
                if not chat.heard_all or len(starts(chat)) < asked:
                    return False
                if await backburner.store.any_active():
                    return False
                return not await backburner.store.signals(ADA, states=OPEN)

            await wait_until_async(quiet, timeout=120)
        # Buttons go last: nobody waits for a post that is only changed.
        await wait_until_async(lambda: not any(each.buttons for each in chat.posts), timeout=60)
    finally:
        process.terminate()
        await process.wait()


async def campaign(chat: ChatServer, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(rounds):
        await one_life(chat, number, chance)
    await until_all_is_told(chat, 2 * rounds)
    shown = [(each.chat, each.text) for each in chat.posts]
    started = starts(chat)
    assert len(started) == 2 * rounds, f"seed {seed}: every start is answered once"
    ended: list[str] = []
    for _, text in shown:
        if not text.startswith("Started"):
            # A line of a list, or the head of an answer of its own.
            ended += re.findall(r"^(?:✅|❌).*?(bg_\w{16})", text, re.MULTILINE)
    ids = {re.findall(r"bg_\w{16}", text)[0] for text in started}
    assert len(ids) == 2 * rounds, f"seed {seed}"
    everything = "\n".join(text for _, text in shown)
    left_out = sum(map(int, re.findall(r"^and (\d+) more", everything, re.MULTILINE)))
    assert len(ended) == len(set(ended)), f"seed {seed}: none is told twice"
    assert len(set(ended)) + left_out == 2 * rounds, f"seed {seed}: every end is told"
    answers = [text for _, text in shown if "Background task complete" in text and "answer" in text]
    assert len(answers) == rounds, f"seed {seed}: every answer arrives"
    assert not any("failed" in text for _, text in shown), f"seed {seed}"


@pytest.fixture
def soon(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails is tried again soon."""
    monkeypatch.setenv("BACKBURNER_DELIVERY_RETRY_S", "0.05")
    monkeypatch.setenv("PYTHONPATH", os.fspath(REPOSITORY))


@pytest.mark.slow
async def test_killed_at_random_moments_every_answer_arrives_and_none_twice(
    chat: ChatServer, soon: None
) -> None:
    """X1, B9: the short one."""
    await campaign(chat, 5, random.randrange(2**32))


@pytest.mark.faults
async def test_killed_a_hundred_times_every_answer_arrives_and_none_twice(
    chat: ChatServer, soon: None
) -> None:
    """X1, B9: the long one."""
    await campaign(chat, 100, random.randrange(2**32))
