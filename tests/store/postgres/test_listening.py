"""One connection hears for all of a process, and what is said while it is away is not missed."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import psycopg
import pytest
from psycopg import Notify

from backburner.store.postgres import listening as module
from backburner.store.postgres import wake
from backburner.store.postgres.listening import listening
from tests.store.postgres.proxy import Cut, Wire
from tests.waiting import pause_async, wait_until_async

_NAMED = "application_name=an_ear"


class Hearer:
    """What one listener was told."""

    def __init__(self) -> None:
        self.said: list[str | None] = []
        self.lost: list[Exception] = []

    def heard(self, notice: Notify | None) -> None:
        """As `Heard`."""
        self.said.append(notice and f"{notice.channel}: {notice.payload}")

    def at(self, address: str, *channels: str) -> AbstractAsyncContextManager[None]:
        """It listens."""
        return listening(address, channels, self.heard, self.lost.append)

    async def was_told(self, *said: str | None) -> None:
        """Wait until that is all, and in this order."""
        await wait_until_async(lambda: len(self.said) >= len(said), message=repr(self.said))
        assert self.said == [*said]


class Database:
    """Says things in a database, and knows who listens there."""

    def __init__(self, address: str) -> None:
        self.address = f"{address}{'&' if '?' in address else '?'}{_NAMED}"
        self._connection = psycopg.connect(address, autocommit=True)

    def say(self, channel: str, payload: str) -> None:
        """To whoever listens."""
        self._connection.execute("SELECT pg_notify(%s, %s)", (channel, payload))

    def ears(self) -> list[int]:
        """The processes of the database that listen."""
        found = self._connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'an_ear'"
            " AND datname = current_database()"
        )
        return [pid for (pid,) in found.fetchall()]

    def hang_up(self) -> None:
        """Cut off whoever listens."""
        for pid in self.ears():
            self._connection.execute("SELECT pg_terminate_backend(%s)", (pid,))

    def close(self) -> None:
        """Leave."""
        self._connection.close()


@pytest.fixture
async def database(address: str) -> AsyncIterator[Database]:
    made = Database(address)
    yield made
    made.close()


@pytest.fixture
async def open_now() -> AsyncIterator[AsyncExitStack]:
    """What a test has entered is left with it."""
    async with AsyncExitStack() as stack:
        yield stack


async def test_all_hear_on_one_connection_and_each_what_it_listens_to(
    database: Database, open_now: AsyncExitStack
) -> None:
    one, other = Hearer(), Hearer()
    await open_now.enter_async_context(one.at(database.address, "a", "both"))
    await open_now.enter_async_context(other.at(database.address, "b", "both"))
    await one.was_told(None)
    await other.was_told(None)
    assert len(database.ears()) == 1
    database.say("a", "1")
    database.say("b", "2")
    database.say("both", "3")
    await one.was_told(None, "a: 1", "both: 3")
    await other.was_told(None, "b: 2", "both: 3")


async def test_who_comes_later_hears_from_then_on_and_disturbs_nobody(
    database: Database, open_now: AsyncExitStack
) -> None:
    """Without waiting for the next time that the connection is asked, which is seconds away."""
    one, later = Hearer(), Hearer()
    await open_now.enter_async_context(one.at(database.address, "a"))
    await one.was_told(None)
    database.say("a", "before")
    await one.was_told(None, "a: before")
    async with asyncio.timeout(5.0):
        await open_now.enter_async_context(later.at(database.address, "a", "ä b"))
        await later.was_told(None)
        database.say("ä b", "then")
        database.say("a", "all")
        await later.was_told(None, "ä b: then", "a: all")
    await one.was_told(None, "a: before", "a: all")


async def test_who_has_left_hears_nothing_and_the_last_one_hangs_up(database: Database) -> None:
    one, other = Hearer(), Hearer()
    async with one.at(database.address, "a"):
        async with other.at(database.address, "a", "b"):
            await other.was_told(None)
        database.say("b", "to nobody")
        database.say("a", "to one")
        await one.was_told(None, "a: to one")
        assert other.said == [None]
    await wait_until_async(lambda: not database.ears(), message="it still listens")
    async with other.at(database.address, "b"):
        await other.was_told(None, None)
        database.say("b", "again")
        await other.was_told(None, None, "b: again")


async def test_who_leaves_at_any_moment_gets_away(database: Database) -> None:
    """Also in the one in which an answer comes."""
    for turns in range(40):
        ear = Hearer()
        async with asyncio.timeout(60), ear.at(database.address, "a"):
            await ear.was_told(None)
            for _ in range(turns):
                await pause_async(0, because="it is asked something after it has begun to listen")
    await wait_until_async(lambda: not database.ears(), message="it still listens")


async def test_x1_who_was_cut_off_is_told_that_something_may_have_been_missed(
    database: Database, open_now: AsyncExitStack
) -> None:
    one, other = Hearer(), Hearer()
    await open_now.enter_async_context(one.at(database.address, "a"))
    await open_now.enter_async_context(other.at(database.address, "b"))
    await one.was_told(None)
    await other.was_told(None)
    database.hang_up()
    await wait_until_async(lambda: bool(one.lost and other.lost), message="nobody has noticed")
    database.say("a", "while nobody hears")
    await one.was_told(None, None)
    await other.was_told(None, None)
    assert len(database.ears()) == 1
    database.say("b", "again")
    await other.was_told(None, None, "b: again")


@pytest.mark.slow
async def test_x1_a_connection_that_hangs_is_noticed_and_made_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ASK_EVERY_S", 0.05)
    monkeypatch.setattr(module, "_ANSWER_S", 0.2)
    ear = Hearer()
    async with Wire(database.address) as wire, ear.at(wire.address, "a"):
        await ear.was_told(None)
        wire.silent = True
        await wait_until_async(lambda: bool(ear.lost), message="it was not noticed")
        wire.silent = False
        await wait_until_async(lambda: len(ear.said) > 1, message="it was not made again")
        database.say("a", "again")
        await wait_until_async(lambda: ear.said[-1] == "a: again", message=repr(ear.said))


@pytest.mark.slow
async def test_x1_one_that_hangs_before_it_listens_is_noticed_too(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ANSWER_S", 0.2)
    ear = Hearer()
    async with Wire(database.address, at=b"synchronous_commit") as wire:
        wire.cut = Cut.SILENT
        async with ear.at(wire.address, "a"):
            await wait_until_async(lambda: bool(ear.lost), message="it was not noticed")
            wire.silent = False
            await wait_until_async(lambda: bool(ear.said), message="it was not made again")


@pytest.mark.slow
async def test_who_comes_with_many_channels_from_far_away_deafens_nobody(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker has several for each tool. To ask for each would take longer than an answer may."""
    one, many = Hearer(), Hearer()
    monkeypatch.setattr(module, "_ANSWER_S", 2.0)
    async with Wire(database.address) as wire, one.at(wire.address, "a"):
        await one.was_told(None)
        wire.late_s = 0.1
        async with many.at(wire.address, *(f"channel {number}" for number in range(60))):
            await many.was_told(None)
            database.say("channel 59", "there")
            await many.was_told(None, "channel 59: there")
        assert one.said == [None]


@pytest.mark.slow
async def test_x1_who_leaves_while_the_database_does_not_answer_gets_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the connection is lost while the driver takes back what it was asking."""
    monkeypatch.setattr(module, "_ASK_EVERY_S", 0.05)
    ear = Hearer()
    async with Wire(database.address) as wire:
        there = ear.at(wire.address, "a")
        await there.__aenter__()
        await ear.was_told(None)
        wire.silent = True
        await pause_async(0.3, because="it is to be in the middle of a question")
        leaving = asyncio.ensure_future(there.__aexit__(None, None, None))
        await pause_async(0.3, because="the driver is to be in the middle of taking it back")
        wire.cut_all()
        wire.silent = False
        await asyncio.wait_for(leaving, 30)
    await wait_until_async(lambda: not database.ears(), message="it still listens")


async def test_a_connection_that_is_lost_takes_no_other_descriptor_along(
    database: Database, open_now: AsyncExitStack
) -> None:
    """Its number is free before those who wait for it know."""
    ear, loop, unread = Hearer(), asyncio.get_running_loop(), 0
    await open_now.enter_async_context(ear.at(database.address, "a"))
    await ear.was_told(None)

    async def is_told() -> bool:
        reads, writes = os.pipe()
        try:
            os.write(writes, b"x")
            readable = asyncio.Event()
            loop.add_reader(reads, readable.set)
            async with asyncio.timeout(5):
                await readable.wait()
        except TimeoutError:
            return False
        else:
            loop.remove_reader(reads)
            return True
        finally:
            os.close(reads)
            os.close(writes)

    async def open_pipes(until: int) -> None:
        nonlocal unread
        asked: set[asyncio.Task[bool]] = set()
        while len(ear.said) < until:
            asked.add(asyncio.create_task(is_told()))
            await pause_async(0, because="one is to be opened in each turn of the loop")
        unread += [await each for each in asked].count(False)

    for cut in range(5):
        pipes = asyncio.create_task(open_pipes(cut + 2))
        await asyncio.to_thread(database.hang_up)
        await pipes
    assert unread == 0


async def test_who_fails_when_it_is_lost_keeps_nobody_from_hearing(
    database: Database, open_now: AsyncExitStack
) -> None:
    said: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, what: said.append(what["exception"]))

    def fails(error: Exception) -> None:
        raise BrokenPipeError from error

    ear = Hearer()
    await open_now.enter_async_context(listening(database.address, ["a"], lambda _: None, fails))
    await open_now.enter_async_context(ear.at(database.address, "a"))
    await ear.was_told(None)
    database.hang_up()
    await ear.was_told(None, None)
    assert {type(error) for error in said} == {BrokenPipeError}


async def test_who_comes_after_all_was_cancelled_hears(database: Database) -> None:
    """As a program does with everything that runs in it, and as its own tasks then leave."""
    first, second = Hearer(), Hearer()
    mine = asyncio.all_tasks()
    there = first.at(database.address, "a")
    await there.__aenter__()
    await first.was_told(None)
    cancelled = asyncio.all_tasks() - mine
    for task in cancelled:
        task.cancel()
    await asyncio.wait(cancelled)
    async with second.at(database.address, "a"):
        await second.was_told(None)
        await there.__aexit__(None, None, None)
        third = Hearer()
        async with third.at(database.address, "a"):
            await third.was_told(None)
            await wait_until_async(lambda: len(database.ears()) == 1)
    await wait_until_async(lambda: not database.ears(), message="it still listens")


async def test_x1_who_cannot_show_that_an_outage_is_over_has_looked(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wake, "_OUTAGE_S", 0.0)
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _what: None)
    looks: list[object] = []
    said: list[str | None] = []

    def looks_again(_pid: int, who: object) -> None:
        looks.append(who)

    def shows(reason: str | None) -> None:
        said.append(reason)
        if reason is None:
            raise BrokenPipeError

    async with Wire(database.address) as wire:
        listener = wake.Listener(wire.address, looks_again, shows)
        await listener.begun()
        wire.closed = True
        wire.cut_all()
        await wait_until_async(lambda: bool(said), message="nobody has noticed")
        wire.closed = False
        await wait_until_async(lambda: None in said, message="it was not made again")
        assert len(looks) > 1
        await listener.close()


async def test_what_one_makes_of_a_notice_is_nobody_elses_affair(
    database: Database, open_now: AsyncExitStack
) -> None:
    said: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, what: said.append(what["exception"]))

    def fails(notice: Notify | None) -> None:
        raise LookupError(notice and notice.payload)

    ear = Hearer()
    await open_now.enter_async_context(listening(database.address, ["a"], fails))
    await open_now.enter_async_context(ear.at(database.address, "a"))
    await ear.was_told(None)
    database.say("a", "1")
    await ear.was_told(None, "a: 1")
    assert [str(error) for error in said if isinstance(error, LookupError)] == ["None", "1"]


async def test_many_come_and_go_while_much_is_said_and_none_of_it_is_missed(
    database: Database, open_now: AsyncExitStack
) -> None:
    steady = Hearer()
    await open_now.enter_async_context(steady.at(database.address, "a"))
    await steady.was_told(None)

    async def come_and_go(number: int) -> None:
        for turn in range(10):
            ear = Hearer()
            async with ear.at(database.address, "a", f"of {number}"):
                await wait_until_async(lambda ear=ear: bool(ear.said))
                await asyncio.to_thread(database.say, f"of {number}", str(turn))
                mine = f"of {number}: {turn}"
                await wait_until_async(lambda ear=ear, mine=mine: mine in ear.said)

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(come_and_go(number))
        for number in range(200):
            await asyncio.to_thread(database.say, "a", str(number))
    await steady.was_told(None, *(f"a: {number}" for number in range(200)))
    assert len(database.ears()) == 1
