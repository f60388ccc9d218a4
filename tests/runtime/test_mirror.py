"""X10: output is copied into a shared record as it is written, and read as if it were here."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backburner.model import clock
from backburner.model.errors import StoreAway
from backburner.model.events import EventKind
from backburner.model.home import AttemptFolder, Home
from backburner.model.order import Order
from backburner.model.task import Task
from backburner.runtime.copies import Copies
from backburner.runtime.dead_nodes import take_over
from backburner.runtime.mirror import Copier
from backburner.runtime.output import read_task_bytes, read_task_output
from backburner.runtime.scribe import insist
from backburner.store.engine import Job
from backburner.store.postgres.mirror import Mirrored
from backburner.store.postgres.node import NodeStore, open_node
from backburner.store.postgres.pieces import Held
from backburner.store.protocol import Facts, Output
from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds
from backburner.work.shell import log_bounds
from tests import postgres_server
from tests.postgres_server import Server
from tests.store.conformance.making import ENDINGS, PLACE, PLENTY, new_task
from tests.store.postgres.test_database import run as ask
from tests.waiting import wait_until_async

HEAD, TAIL = 64 * 1024, 256 * 1024


class Node:
    """A machine with one task, whose log the test writes."""

    def __init__(self, address: str, home: Home, store: NodeStore, task: Task) -> None:
        self.address = address
        self.home = home
        self.store = store
        self.task = task
        self.folder = AttemptFolder(home.attempt(task.id, task.attempt).path)
        os.makedirs(self.folder.path)
        self.begin()

    def begin(self) -> None:
        """As a worker that has just started: it knows of no copies."""
        self.store.before_end.clear()
        self.copier = Copier(self.store, self.home, lambda: [self.task], print)

    async def writes(self, data: bytes) -> None:
        with open(self.folder.log, "ab") as log:
            log.write(data)
        LogBounder(self.folder.log, log_bounds(self.task.spec)).bound()
        await self.copier.copy(self.task)

    async def tries_again(self) -> Task:
        """The attempt fails, and the next one begins. Answers the task as it was in the first."""
        before, due = self.task, clock.now() - 1
        assert await self.store.fail_try(before.id, before.attempt, ENDINGS["exit"], due)
        await self.store.let_in_due()
        await self.store.take(Job(before.id, before.attempt + 1))
        task = await self.store.claim(before.id, before.attempt + 1, PLACE)
        assert task is not None
        self.task, self.folder = task, self.home.attempt(task.id, task.attempt)
        os.makedirs(self.folder.path)
        return before

    def attempts(self) -> dict[int, int]:
        """Those of which the record holds output, and how much."""
        rows = ask(
            self.address,
            "SELECT attempt, coalesce(sum(length(data)), 0)::bigint FROM mirror"
            " LEFT JOIN mirror_piece USING (task, attempt, stream) GROUP BY attempt",
        )
        return {int(str(attempt)): int(str(kept)) for attempt, kept in rows}

    def pieces(self) -> dict[int, int]:
        """By place, the transaction that wrote each."""
        rows = ask(self.address, "SELECT at, xmin::text FROM mirror_piece")
        return {int(str(at)): int(str(wrote)) for at, wrote in rows}


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with on_node(postgres_server.server().create(), tmp_path) as node:
        yield node


@contextlib.asynccontextmanager
async def on_node(address: str, tmp_path: Path) -> AsyncGenerator[Node]:
    store = await open_node(address, "nd_1")
    spec = {"command": "x", "log": [HEAD, TAIL]}
    order = Order(retries=9)
    await store.create(new_task("bg_talks", spec=spec, order=order), limit=PLENTY)
    await store.take(Job("bg_talks", 1))
    task = await store.claim("bg_talks", 1, PLACE)
    assert task is not None
    yield Node(address, Home(tmp_path / "node", address), store, task)
    await store.close()


@pytest.fixture
def reader(node: Node, tmp_path: Path) -> Callable[[], Awaitable[bytes]]:
    """Reads what is new, as somebody who follows the task on another machine."""
    home = Home(tmp_path / "reader", node.address)
    copies = Copies(node.store, home)
    cursor: list[str | None] = [None]

    async def read() -> bytes:
        task = await node.store.get(node.task.id)
        assert task is not None
        await copies.fetch(task)
        chunk = read_task_output(home, task, since=cursor[0], max_chars=None, raw=True)
        cursor[0] = chunk.cursor
        return chunk.text.encode()

    return read


async def whole(node: Node, folder: Path) -> bytes:
    """What somebody sees who has read nothing yet."""
    home = Home(folder, node.address)
    task = await node.store.get(node.task.id)
    assert task is not None
    await Copies(node.store, home).fetch(task)
    return read_task_bytes(home, task).whole()


def lines(first: int, last: int) -> bytes:
    return b"".join(b"line %06d\n" % number for number in range(first, last))


async def test_x10_who_follows_reads_each_byte_once(
    node: Node, reader: Callable[[], Awaitable[bytes]], tmp_path: Path
) -> None:
    await node.writes(lines(0, 3))
    assert await reader() == lines(0, 3)
    assert await reader() == b""
    for number in range(3, 80):
        await node.writes(lines(number, number + 1))
        if number % 7 == 0:
            assert (await reader()).endswith(lines(number, number + 1))
    assert (await reader()).endswith(lines(79, 80))
    assert await whole(node, tmp_path / "late") == lines(0, 80)


async def test_x10_a_full_log_costs_what_is_added_to_it(node: Node) -> None:
    await node.writes(lines(0, 60_000))
    before = node.pieces()
    kept = int(str(ask(node.address, "SELECT sum(length(data)) FROM mirror_piece")[0][0]))
    assert HEAD + TAIL <= kept <= HEAD + TAIL + 100 * 1024
    await node.writes(lines(60_000, 60_001))
    after = node.pieces()
    assert len(after.items() - before.items()) == 1, "one piece was written"
    assert len(before.items() - after.items()) <= 1, "and the oldest of the tail went"


async def test_x10_what_a_flood_has_dropped_is_a_gap_and_all_else_is_as_on_the_machine(
    node: Node, reader: Callable[[], Awaitable[bytes]], tmp_path: Path
) -> None:
    await node.writes(lines(0, 100))
    assert await reader() == lines(0, 100)
    await node.writes(lines(100, 100_000))
    said = await reader()
    assert said.endswith(lines(99_000, 100_000))
    assert b"dropped" in said
    await node.writes(lines(100_000, 100_010))
    assert await reader() == lines(100_000, 100_010)
    LogBounder(node.folder.log, log_bounds(node.task.spec)).bound(final=True)
    await node.store.finish(node.task.id, 1, ENDINGS["succeeded"])
    original = read_task_bytes(node.home, node.task)
    assert await whole(node, tmp_path / "late") == original.whole()
    await reader()
    assert await whole(node, tmp_path / "reader") == original.whole(), "who followed has the same"


async def test_x2_a_worker_that_comes_back_goes_on_where_the_record_is(
    node: Node, reader: Callable[[], Awaitable[bytes]], tmp_path: Path
) -> None:
    await node.writes(lines(0, 5_000))
    assert await reader() == lines(0, 5_000)
    before = node.pieces()
    node.begin()
    await node.writes(lines(5_000, 5_001))
    assert await reader() == lines(5_000, 5_001)
    assert len(node.pieces().items() - before.items()) == 1, "nothing was copied again"
    assert await whole(node, tmp_path / "late") == lines(0, 5_001)


async def test_x2_a_copy_that_the_database_has_forgotten_is_made_again(
    node: Node, tmp_path: Path
) -> None:
    await node.writes(lines(0, 10))
    ask(node.address, "DELETE FROM mirror_piece")
    ask(node.address, "UPDATE mirror SET total = 0")
    await node.writes(lines(10, 20))
    assert await whole(node, tmp_path / "late") == lines(0, 20)


async def test_e6_the_record_keeps_so_much_of_a_log_whatever_its_machine_keeps(
    node: Node, tmp_path: Path
) -> None:
    node.task = replace(node.task, spec={**node.task.spec, "log": [2**40, 2**40]})
    for number in range(10):
        await node.writes(lines(number * 30_000, number * 30_000 + 30_000))
    ((kept,),) = ask(node.address, "SELECT sum(length(data))::bigint FROM mirror_piece")
    usual = LogBounds()
    assert usual.head + usual.tail <= int(str(kept)) <= usual.most + 2 * 64 * 1024
    said = await whole(node, tmp_path / "late")
    assert said.startswith(lines(0, 1_000))
    assert said.endswith(lines(299_000, 300_000))


async def test_e6_the_record_keeps_no_more_of_two_streams_than_of_one(
    node: Node, tmp_path: Path
) -> None:
    node.task = replace(node.task, spec={**node.task.spec, "separate_stderr": True})
    node.task = replace(node.task, spec={**node.task.spec, "log": [2**40, 2**40]})
    for number in range(6):
        with open(node.folder.stderr, "ab") as errors:
            errors.write(lines(number * 30_000, number * 30_000 + 30_000))
        await node.writes(lines(number * 30_000, number * 30_000 + 30_000))
    rows = ask(
        node.address, "SELECT stream, sum(length(data))::bigint FROM mirror_piece GROUP BY 1"
    )
    kept = {str(stream): int(str(size)) for stream, size in rows}
    assert kept.keys() == {"output", "stderr"}
    assert sum(kept.values()) <= LogBounds().most + 4 * 64 * 1024
    assert (await whole(node, tmp_path / "late")).endswith(lines(179_000, 180_000))


async def test_e6_the_record_keeps_no_more_of_a_task_with_many_attempts_than_of_one(
    node: Node, reader: Callable[[], Awaitable[bytes]], tmp_path: Path
) -> None:
    """And who reads has the last that has written, whatever those before it still say."""
    most = HEAD + TAIL + 100 * 1024
    for attempt in range(1, 5):
        await node.writes(lines(attempt * 100_000, attempt * 100_000 + 60_000))
        assert node.attempts().keys() == {attempt}
        assert HEAD + TAIL <= node.attempts()[attempt] <= most
        last = lines(attempt * 100_000 + 59_000, attempt * 100_000 + 60_000)
        assert (await reader()).endswith(last)
        before = await node.tries_again()
        with open(node.home.attempt(before.id, before.attempt).log, "ab") as log:
            log.write(b"late\n")
        await node.copier.copy(before)
        assert node.attempts().keys() == {attempt}
        assert sum(node.attempts().values()) <= most
    await node.writes(b"the last one\n")
    for late in range(1, 5):
        said = replace(node.task, attempt=late)
        for copier in (node.copier, Copier(node.store, node.home, list, print)):
            await copier.copy(said)
            await copier.copy(said, last=True)
    assert node.attempts() == {5: 13}
    assert await reader() == b"the last one\n"
    assert await whole(node, tmp_path / "late") == b"the last one\n"


async def test_e6_until_an_attempt_writes_the_output_of_the_one_before_it_is_read(
    node: Node, tmp_path: Path
) -> None:
    """Times of which nothing was copied are no output, and do not pile up either."""
    await node.writes(b"first\n")
    for _ in range(3):
        await node.tries_again()
        Path(node.folder.marks).write_bytes(b"1 2\n")
        await node.writes(b"")
        assert node.attempts() == {1: 6, node.task.attempt: 4}
    due = clock.now() + clock.SECOND * 3600
    assert await node.store.fail_try(node.task.id, node.task.attempt, ENDINGS["exit"], due)
    assert await whole(node, tmp_path / "late") == b"first\n"


async def test_x10_what_a_reader_has_of_the_attempt_before_is_not_sent_again(
    node: Node, reader: Callable[[], Awaitable[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    ask_for = node.store.outputs

    async def counted(*asked: Any) -> list[Mirrored]:
        found = await ask_for(*asked)
        sent.append(sum(len(data) for each in found for _, data in each.pieces))
        return found

    monkeypatch.setattr(node.store, "outputs", counted)
    await node.writes(lines(0, 1000))
    await reader()
    await node.tries_again()
    for _ in range(2):
        await reader()
    await node.writes(b"second\n")
    assert await reader() == b"second\n"
    assert sent == [len(lines(0, 1000)), 0, 0, len(b"second\n")]


async def test_e6_an_attempt_that_empties_its_log_leaves_nothing_of_those_before_it(
    node: Node, reader: Callable[[], Awaitable[bytes]], tmp_path: Path
) -> None:
    for number in range(3):
        await node.writes(lines(0, 60_000))
        assert node.attempts().keys() == {node.task.attempt}
        assert (await reader()).endswith(lines(59_000, 60_000))
        os.truncate(node.folder.log, 0)
        await node.writes(b"")
        assert node.attempts() == {node.task.attempt: 0}
        await node.writes(lines(0, number))
        await node.tries_again()
    await node.writes(b"last\n")
    assert node.attempts() == {4: 5}
    assert await whole(node, tmp_path / "late") == b"last\n"


async def test_x2_what_a_crash_takes_of_an_attempt_that_has_begun_takes_nothing_for_good(
    node: Node, tmp_path: Path
) -> None:
    """The copies of the one before it are there again with it, and go with the next copy."""
    await node.writes(b"first\n")
    await node.tries_again()
    await node.writes(b"second\n")
    ask(node.address, "DELETE FROM mirror")
    first = "SELECT seq, 1, 'output' FROM task"
    ask(node.address, f"INSERT INTO mirror (task, attempt, stream) {first}")
    await node.writes(b"third\n")
    assert node.attempts() == {2: 13}
    assert await whole(node, tmp_path / "late") == b"second\nthird\n"


@pytest.mark.slow
@pytest.mark.parametrize("ends", [False, True])
async def test_x2_what_a_crash_of_the_database_takes_of_a_silent_job_is_copied_again(
    own_server: Server, tmp_path: Path, ends: bool
) -> None:
    """Copies do not wait for the disk. Nothing comes after them that would show what is gone."""
    async with on_node(own_server.create(), tmp_path) as node:
        copying = asyncio.create_task(node.copier.run())
        await node.writes(b"RESULT 42\n")
        own_server.stop(signal.SIGQUIT)
        own_server.start()
        if ends:
            copying.cancel()
            await insist(lambda: node.store.finish(node.task.id, 1, ENDINGS["succeeded"]), print)
            assert await whole(node, tmp_path / "late") == b"RESULT 42\n"
        else:
            late = partial(whole, node, tmp_path / "late")
            await wait_until_async(lambda: _is(late, b"RESULT 42\n"))
            copying.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("copied", [False, True])
async def test_x2_what_was_copied_for_an_end_is_there_though_the_database_crashes_before_it(
    own_server: Server, tmp_path: Path, copied: bool
) -> None:
    """The writer of the end waits for it to come back, and asks nobody to copy anything again."""

    async def crash(_: Task) -> None:
        own_server.stop(signal.SIGQUIT)
        own_server.start()

    async with on_node(own_server.create(), tmp_path) as node:
        node.store.before_end.append(crash)
        if copied:
            await node.writes(b"RESULT 42\n")
        else:
            Path(node.folder.log).write_bytes(b"RESULT 42\n")
        assert await node.store.finish(node.task.id, 1, ENDINGS["succeeded"]) is not None
        assert await whole(node, tmp_path / "late") == b"RESULT 42\n"


@pytest.mark.slow
@pytest.mark.parametrize("grows", ["output", "stderr"])
async def test_x2_what_a_crash_takes_in_the_middle_of_the_last_copy_is_copied_again(
    own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grows: str
) -> None:
    """The record has said what it holds, and has forgotten it when the copy is put."""
    async with on_node(own_server.create(), tmp_path) as node:
        true = node.store.held_output

        async def before_a_crash(task_id: str, attempt: int) -> dict[str, Held]:
            held = await true(task_id, attempt)
            monkeypatch.undo()
            own_server.stop(signal.SIGQUIT)
            own_server.start()
            return held

        monkeypatch.setattr(node.store, "held_output", before_a_crash)
        await node.writes(b"RESULT 42\n")
        if grows == "stderr":
            Path(node.folder.stderr).write_bytes(b"warning\n")
        assert await node.store.finish(node.task.id, 1, ENDINGS["succeeded"]) is not None
        assert (await whole(node, tmp_path / "late")).startswith(b"RESULT 42\n")


async def test_e6_what_is_left_behind_writes_last_is_copied(node: Node, tmp_path: Path) -> None:
    await node.writes(b"first\n")
    await node.store.finish(node.task.id, 1, ENDINGS["succeeded"], leftovers=1)
    with open(node.folder.log, "ab") as log:
        log.write(b"late\n")
    gone = Facts(leftovers=0, output=Output(11))
    assert await node.store.note(node.task.id, 1, EventKind.LEFTOVERS, gone)
    assert await whole(node, tmp_path / "late") == b"first\nlate\n"


async def test_x2_who_declares_a_machine_dead_leaves_its_output_as_the_record_has_it(
    node: Node, tmp_path: Path
) -> None:
    """It has a copy, which is older, and carries out work of its own."""
    other, home = await open_node(node.address, "nd_2"), Home(tmp_path / "reader", node.address)
    Copier(other, home, list, print)
    await node.writes(lines(0, 3))
    await Copies(other, home).fetch(node.task)
    await node.writes(lines(3, 500))
    assert await other.finish(node.task.id, 1, ENDINGS["exit"]) is not None
    assert await whole(node, tmp_path / "late") == lines(0, 500)
    await other.close()


async def test_x2_who_comes_back_under_its_name_copies_what_its_last_process_has_written(
    node: Node, tmp_path: Path
) -> None:
    await node.writes(b"first\n")
    with open(node.folder.log, "ab") as log:
        log.write(b"last\n")
    again = await open_node(node.address, "nd_1")
    Copier(again, node.home, list, print)
    await take_over(again, node.home, print)
    task = await again.get(node.task.id)
    assert task is not None
    assert task.state.terminal
    assert await whole(node, tmp_path / "late") == b"first\nlast\n"
    await again.close()


async def test_x10_a_log_that_cannot_be_read_is_told_once_and_keeps_nothing_else_up(
    node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await node.writes(b"first\n")
    os.unlink(node.folder.log)
    os.mkdir(node.folder.log)
    Path(node.folder.stderr).write_bytes(b"warning\n")
    for _ in range(3):
        await node.copier.copy(node.task)
    assert await node.store.finish(node.task.id, 1, ENDINGS["exit"]) is not None
    assert capsys.readouterr().out.count("cannot be copied") == 1
    assert await whole(node, tmp_path / "late") == b"first\n"
    copied = Home(tmp_path / "late", node.address).attempt(node.task.id, 1)
    assert Path(copied.stderr).read_bytes() == b"warning\n"


async def _is(look: Callable[[], Awaitable[bytes]], wanted: bytes) -> bool:
    with contextlib.suppress(StoreAway):
        return await look() == wanted
    return False


@pytest.mark.parametrize("longer", [False, True])
async def test_e6_a_log_that_the_job_has_emptied_begins_anew(
    node: Node, reader: Callable[[], Awaitable[bytes]], longer: bool, tmp_path: Path
) -> None:
    await node.writes(lines(0, 500))
    assert await reader() == lines(0, 500)
    os.truncate(node.folder.log, 0)
    again = lines(1_000, 2_000 if longer else 1_002)
    await node.writes(again)
    assert await whole(node, tmp_path / "late") == again
    said = await reader()
    if not longer:  # else nobody could tell, also where the job runs
        assert said.endswith(again)
        assert b"emptied" in said
    await node.writes(lines(7, 8))
    assert await whole(node, tmp_path / "reader") == again + lines(7, 8)


async def test_x10_two_who_read_at_once_have_the_same_copy(node: Node, tmp_path: Path) -> None:
    for number in range(20):
        await node.writes(lines(number * 100, number * 100 + 100))
        found = await asyncio.gather(*(whole(node, tmp_path / "reader") for _ in range(5)))
        assert set(found) == {lines(0, number * 100 + 100)}
