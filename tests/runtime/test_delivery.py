"""X1: the keeper pushes signals through channels: in order, and again when it fails."""

from pathlib import Path

import pytest

from backburner import (
    Backburner,
    NotFound,
    SignalKind,
    SignalState,
    UsageError,
)
from backburner.model import clock
from tests.faults.victims import (
    sleepers,
    unique_seconds,
)
from tests.receiver import LATER_S, Receiver
from tests.runtime.deliveries import all_are, ended, files_with, lines, pushed, the_push
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_retries")]


async def test_x1_a_command_is_told_of_every_end_in_its_order(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        assert await bb.add_channel("log", command=f"cat >>{log}") is None
        tasks = [await ended(session, f"exit {number % 2}") for number in range(12)]
        await wait_until_async(lambda: len(lines(log)) == 12)
        assert [each["task"] for each in lines(log)] == [task.id for task in tasks]
        assert [each["key"] for each in lines(log)] == [f"{task.id}:end@log" for task in tasks]
        await wait_until_async(lambda: all_are(session, "log", SignalState.DELIVERED, count=12))
        assert {signal.tries for signal in await pushed(session, "log")} == {1}
        inbox = await session.told()
        assert {signal.record.state for signal in inbox} == {SignalState.PENDING}


async def test_x1_a_webhook_is_signed_with_the_key_that_was_shown(
    home: Path, server: Receiver
) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        secret = await bb.add_channel("web", webhook=server.url(), allow_private=True)
        assert secret is not None
        (kept,) = (home / "secrets").iterdir()
        assert kept.stat().st_mode & 0o777 == 0o600
        assert files_with(secret, home) == [str(kept)]
        task = await ended(session, "exit 3", title="three")
        await the_push(session, "web")
        (got,) = server.received
        document = got.verified(secret)
        assert document["type"] == "backburner.task.failed"
        assert f"three ({task.id}) failed: exit code 3" in document["data"]["signal"]["text"]
        assert document["data"]["task"]["exit_code"] == 3
        await bb.remove_channel("web")
        assert list((home / "secrets").iterdir()) == []
        with pytest.raises(NotFound):
            await bb.remove_channel("web")


async def test_x1_a_delivery_is_repeated_under_its_key_until_it_works(
    home: Path, server: Receiver
) -> None:
    server.answer = 500
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await bb.add_channel("web", webhook=server.url(), allow_private=True)
        task = await ended(session)
        server.wait_for(3)
        server.answer = None
        done = await the_push(session, "web")
        assert done.tries == len(server.received) >= 4
        assert {got.key for got in server.received} == {f"{task.id}:end@web"}


async def test_x1_what_is_given_up_is_visible_and_can_be_sent_again(
    home: Path, server: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DELIVERY_RETRY_S", "0.001")
    server.answer = 500
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await bb.add_channel("web", webhook=server.url(), allow_private=True)
        await ended(session)
        dead = await the_push(session, "web", SignalState.DROPPED)
        assert dead.reason == "given up after 6 tries: it answered 500 Internal Server Error"
        assert (dead.tries, dead.retry_at) == (6, None)
        assert len(server.received) == 6
        server.answer = None
        (letter,) = await session.told(channel="web")
        assert await letter.resend()
        assert not await letter.resend()
        again = await the_push(session, "web")
        assert (again.key, again.tries) == (dead.key, 1)


async def test_410_pauses_the_channel_and_resuming_it_goes_on(home: Path, server: Receiver) -> None:
    server.answer = 410
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await bb.add_channel("web", webhook=server.url(), allow_private=True)
        await ended(session)
        first = await the_push(session, "web", SignalState.DROPPED)
        assert first.reason is not None
        assert "410" in first.reason
        (channel,) = await bb.channels()
        assert channel.paused == first.reason
        await ended(session)
        second = (await pushed(session, "web"))[1]
        assert (second.state, second.reason, second.tries) == (
            SignalState.DROPPED,
            first.reason,
            0,
        )
        server.answer = None
        letters = await session.told(channel="web")
        assert not await letters[0].resend()
        assert await bb.resume_channel("web")
        assert not await bb.resume_channel("web")
        for letter in letters:
            assert await letter.resend()
        await wait_until_async(lambda: all_are(session, "web", SignalState.DELIVERED, count=2))


async def test_a_receiver_that_asks_for_time_gets_it(home: Path, server: Receiver) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await bb.add_channel("web", webhook=server.url("/later"), allow_private=True)
        await ended(session)
        failed = await the_push(session, "web", SignalState.FAILED)
        assert failed.retry_at is not None
        assert LATER_S - 60 < (failed.retry_at - clock.now()) / clock.SECOND <= LATER_S
        assert len(server.received) == 1
        await bb.remove_channel("web")


@pytest.mark.parametrize("path", ["/slow", "/drip"])
async def test_a_receiver_that_hangs_has_its_time_limit_as_a_whole(
    home: Path, server: Receiver, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("BACKBURNER_DELIVERY_LIMIT_S", "0.5")
    monkeypatch.setenv("BACKBURNER_DELIVERY_RETRY_S", "1000")
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await bb.add_channel("web", webhook=server.url(path), allow_private=True)
        await ended(session)
        failed = await the_push(session, "web", SignalState.FAILED)
        assert failed.reason == "no answer within 0.5 s"
        await bb.remove_channel("web")


async def test_a_channel_that_hangs_holds_up_neither_jobs_nor_other_channels(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DELIVERY_LIMIT_S", "300")  # more than a test has
    seconds, log = unique_seconds(), tmp_path / "log"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        for name in ("a", "b", "c"):
            await bb.add_channel(name, command=f"exec sleep {seconds}")
        await bb.add_channel("quick", command=f"cat >>{log}")
        for _ in range(5):
            await ended(session)
        await wait_until_async(lambda: len(lines(log)) == 5)
        await wait_until_async(lambda: len(sleepers(seconds)) >= 3)
        assert len(sleepers(seconds)) == 3, "one at a time for each channel"
    # What hangs goes with its home: that nothing is left is checked after the test.


async def test_x10_receivers_of_one_owner_that_hang_hold_up_no_other_owner(
    home: Path, server: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DELIVERY_LIMIT_S", "300")  # more than a test has
    async with Backburner.open(home) as bb:
        for n in range(9):
            hanging = server.url(f"/slow?{n}")
            await bb.add_channel(f"hook{n}", webhook=hanging, allow_private=True, owner="hog")
        await bb.add_channel("web", webhook=server.url(), allow_private=True, owner="ada")
        await ended(bb.session("s", owner="hog"))
        server.wait_for(4)
        for number in range(3):
            await ended(bb.session("s", owner="ada"))
            await wait_until_async(lambda: len(paths(server, "/ok")) == number + 1)  # noqa: B023 - waited for
        assert len(paths(server, "/slow")) == 4, "so many of one owner at once"


def paths(server: Receiver, begin: str) -> list[str]:
    return [got.path for got in server.received if got.path.startswith(begin)]


async def test_a_quiet_session_is_told_what_it_wishes_and_no_more(
    home: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with Backburner.open(home) as bb:
        session, other = bb.session("s"), bb.session("other")
        await bb.add_channel("log", command=f"cat >>{log}")
        await session.wish([])
        assert await session.wished() == frozenset()
        await ended(session, "exit 1")
        await session.wish([SignalKind.FAILED])
        await ended(session)
        told = [await ended(session, "exit 3"), await ended(other)]
        await session.wish(None)
        assert await session.wished() is None
        told.append(await ended(session))
        await wait_until_async(lambda: len(lines(log)) == 3)
        assert [each["task"] for each in lines(log)] == [task.id for task in told]
        states = [signal.record.state for signal in await session.told()]
        assert states == [*[SignalState.DROPPED] * 2, *[SignalState.PENDING] * 2]
        with pytest.raises(UsageError, match="'nonsense' is no kind of signal"):
            await session.wish(["nonsense"])  # type: ignore[list-item]


async def test_a_channel_of_another_owner_does_not_exist(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with Backburner.open(home) as bb:
        await bb.add_channel("log", command=f"cat >>{log}", owner="ada")
        await bb.add_channel("log", command="exit 1", owner="bob", session="s")
        assert [channel.owner for channel in await bb.channels(owner="ada")] == ["ada"]
        assert await bb.channels() == []
        with pytest.raises(NotFound):
            await bb.remove_channel("log")
        task = await ended(bb.session("s", owner="ada"))
        await ended(bb.session("other", owner="bob"))
        await the_push(bb.session("s", owner="ada"), "log")
        assert [each["task"] for each in lines(log)] == [task.id]


async def test_x1_prune_leaves_a_task_that_a_channel_has_yet_to_tell_of(
    home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await bb.add_channel("door", command=f"cat >/dev/null; test -e {tmp_path}/open")
        task = await ended(session, "true")
        assert await bb.prune(older_than=0) == 0
        assert await bb.prune(max_size=0) == 0
        (tmp_path / "open").touch()
        await wait_until_async(lambda: all_are(session, "door", SignalState.DELIVERED, count=1))
        assert await bb.prune(older_than=0) == 1
        with pytest.raises(NotFound):
            await session.task(task.id)
