"""X10, E3, E11: tools and agents on many machines keep the promises that they have in a home."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from backburner import (
    Attachment,
    Backburner,
    Context,
    InvalidArguments,
    LimitReached,
    State,
    Task,
    UsageError,
)
from backburner.model.states import ErrorKind
from backburner.runtime.station import Station
from tests.nodes.conftest import NewApplication, NewWorker
from tests.nodes.holding import SHOP, begun, told
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]


# In the application itself


async def test_e2_a_tool_of_the_application_runs_in_its_event_loop(
    shared: Backburner, home: Path
) -> None:
    loops: list[object] = []

    @shared.tool(background=True)
    async def here(context: Context, text: str) -> dict[str, str]:
        loops.append(asyncio.get_running_loop())
        context.progress(1, 2)
        context.output("stdout", "from here\n")
        await context.tell("so far so good")
        return {"said": text}

    session = shared.session("chat")
    task = await session.spawn("here", {"text": "hi"})
    await task.wait(timeout=60)
    assert (task.state, task.result) == (State.SUCCEEDED, {"said": "hi"})
    assert loops == [asyncio.get_running_loop()]
    assert (await task.output()).text == "[stdout] from here\n"
    assert await told(session) == [f"message {task.id}", f"completed {task.id}"]


async def test_d1_d2_a_call_is_parked_and_told_of_once(shared: Backburner, folder: Path) -> None:
    @shared.tool(background=True)
    async def slow(folder: str) -> str:
        await wait_until_async(Path(folder, "go").exists)
        return "at last"

    session = shared.session("chat")
    assert (await session.invoke("slow", {"folder": "/"}, budget=0)).parked
    (folder / "go").touch()
    quick = await session.invoke("slow", {"folder": str(folder)}, budget=60)
    assert (quick.parked, quick.result) == (False, "at last")
    (folder / "go").unlink()
    outcome = await session.invoke("slow", {"folder": str(folder)}, budget=0.1)
    assert outcome.parked
    (folder / "go").touch()
    await outcome.task.wait(timeout=60)
    assert await told(session) == [f"completed {outcome.task.id}"]


async def test_an_application_that_closes_leaves_nothing_of_itself(
    shared: Backburner, address: str, folder: Path
) -> None:
    other = Backburner.open(address)

    @other.tool(background=True)
    async def forever() -> None:
        await asyncio.Event().wait()

    async with other:
        task = await other.session("chat").spawn("forever")
    task = await shared.session("chat").task(task.id)
    assert task.error is not None
    assert task.error.kind is ErrorKind.ORPHANED
    assert await shared.store.nodes() == []  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


async def test_x10_what_was_brought_to_one_that_closes_runs_elsewhere(
    shared: Backburner, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: nobody here would be taken for dead in time."""
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", "86400")
    brought = asyncio.Event()

    async def hesitate(*_: object) -> bool:
        brought.set()
        return await asyncio.Event().wait()

    def with_tool() -> Backburner:
        opened = Backburner.open(address)
        opened.tool(background=True)(greet)
        return opened

    async def greet() -> str:
        return "hello"

    async with with_tool() as first:
        await first.runs.begin()
        with monkeypatch.context() as patched:
            patched.setattr(Station, "_has_begun", hesitate)
            task = await shared.session("chat").spawn("greet")
            await brought.wait()
    async with with_tool() as second:
        await second.runs.begin()
        await task.wait(timeout=60)
    assert (task.state, task.result) == (State.SUCCEEDED, "hello")


# On another machine


async def test_x10_a_tool_that_is_not_here_runs_where_it_is(
    shared: Backburner, new_worker: NewWorker
) -> None:
    new_worker(*SHOP)
    session = shared.session("chat", owner="ada")
    task = await session.spawn("shout", {"text": "hey", "times": 2})
    await task.wait(timeout=60)
    assert (task.state, task.result) == (State.SUCCEEDED, "HEYHEY")
    assert (await task.output()).text == "[stdout] shouts hey\n"
    assert await told(session) == [f"completed {task.id}"]
    called = await session.invoke("shout", {"text": "ho"})
    assert (called.success, called.result, called.parked) == (True, "HO", False)
    assert await told(session) == [], "who waited for the answer has it"
    with pytest.raises(InvalidArguments, match=r"(?s)shout.*times"):
        await session.spawn("shout", {"text": "hey", "times": "often"})
    with pytest.raises(UsageError, match="shout"):
        await session.spawn("shouts", {})
    with pytest.raises(UsageError, match="secrets"):
        await session.spawn("log_in", {"password": "hunter2"})


async def test_a_model_sees_what_others_have(shared: Backburner, new_worker: NewWorker) -> None:
    new_worker(*SHOP)
    await shared.known_tools()
    tools = shared.session("chat").toolset("spawn_background")
    assert "shout" in json.dumps(tools.schemas("mcp"))
    answer = await tools.call("spawn_background", {"tool": "shout", "args": {"text": "x"}})
    assert not answer.is_error, answer.text
    assert answer.data["task_id"] in answer.text
    assert "do not poll" in answer.text
    task = await shared.session("chat").task(answer.data["task_id"])
    await task.wait(timeout=60)
    assert task.result == "X"
    tools = shared.session("chat").toolset()
    answer = await tools.call("background_run", {"tool": "shout", "args": {"text": "y"}})
    said = f"Started {answer.data['id']}. You will be told when it ends: go on, do not poll."
    assert answer.text.startswith(said), answer.text


async def test_a_tool_whose_worker_is_away_waits_for_it_and_says_so(
    shared: Backburner, new_worker: NewWorker
) -> None:
    worker = new_worker(*SHOP)
    worker.leave()
    task = await shared.session("chat").spawn("shout", {"text": "x"})
    assert (task.state, task.record.detail) == (
        State.QUEUED, "waits for a worker or application that has the tool shout",
    )  # fmt: skip
    worker.start()
    await task.wait(timeout=60)
    assert (task.result, task.record.detail) == ("X", None)


async def test_c6_a_question_is_answered_and_a_message_sent_from_another_machine(
    shared: Backburner, new_worker: NewWorker
) -> None:
    new_worker(*SHOP)
    session = shared.session("chat")
    asking = await session.spawn("ask_name", {})
    await wait_until_async(lambda: _is(asking, State.INPUT_REQUIRED))
    await asking.send("Ada")
    await asking.wait(timeout=60)
    assert asking.result == "it is called Ada"
    hearing = await session.spawn("echo_message", {})
    await wait_until_async(lambda: _is(hearing, State.RUNNING))
    await hearing.send("psst")
    await hearing.wait(timeout=60)
    assert hearing.result == "psst"
    assert hearing.record.progress is not None


async def test_d6_d2_a_call_on_another_machine_is_parked_or_goes_with_its_caller(
    shared: Backburner, new_worker: NewWorker, folder: Path
) -> None:
    new_worker(*SHOP)
    session = shared.session("chat")
    calling = asyncio.create_task(session.invoke("hold", {"folder": str(folder)}))
    await wait_until_async(lambda: begun(folder) == 1)
    calling.cancel()
    await asyncio.wait([calling])
    await wait_until_async(lambda: any(folder.glob("cut-*")))
    outcome = await session.invoke("hold", {"folder": str(folder)}, budget=0.2)
    assert outcome.parked
    (folder / "go").touch()
    await outcome.task.wait(timeout=60)
    assert outcome.task.result == "held"
    assert await told(session) == [f"completed {outcome.task.id}"]


async def test_e7_a_stop_reaches_a_tool_on_another_machine(
    shared: Backburner, new_worker: NewWorker, folder: Path
) -> None:
    new_worker(*SHOP)
    task = await shared.session("chat").spawn("hold_once", {"folder": str(folder)})
    await wait_until_async(lambda: begun(folder) == 1)
    await task.stop()
    assert task.state is State.CANCELED
    assert len(list(folder.glob("cut-*"))) == 1
    assert "stopped on request" in (await task.output()).text


async def test_b8_an_agent_of_a_worker_answers_and_its_children_end_with_it(
    shared: Backburner, new_worker: NewWorker, folder: Path
) -> None:
    new_worker(*SHOP)
    session = shared.session("chat")
    task = await session.ask(str(folder), agent="parent")
    await task.wait(timeout=60)
    assert task.state is State.SUCCEEDED, task.error
    (child,) = await shared.session(task.id).tasks()
    assert task.result == f"asked for {child.id}"
    await child.wait(timeout=60)
    assert child.state is State.CANCELED
    with pytest.raises(UsageError, match="patient"):
        await session.ask("x", agent="nobody")


async def test_b8_a_command_line_agent_of_a_worker_is_asked_from_elsewhere(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    worker = new_worker(*SHOP, PGPASSWORD="hunter2hunter2")
    session = shared.session("chat")
    task = await (await session.ask("--how are you?", agent="program")).wait(timeout=60)
    assert (task.state, task.result) == (State.SUCCEEDED, "the worker says:  --how are you?")
    offered = await asyncio.to_thread(
        rows, shared.home.address, "SELECT document FROM backburner.offer WHERE name = 'program'"
    )
    assert "says" not in f"{offered} {task.record.spec}", "its command line is its machine's"
    said = (await task.output()).stderr_text or ""
    assert "WHO=the worker" in said
    assert "hunter2" not in said
    with pytest.raises(UsageError, match="takes no attachments"):
        await session.ask("x", agent="program", attachments=[b"%PDF-"])
    # It is a process: it goes on while its worker is away.
    await asyncio.to_thread(worker.kill)
    waits = await session.ask("again", agent="program")
    await asyncio.to_thread(worker.start)
    assert (await waits.wait(timeout=60)).result == "the worker says: again"


async def test_b8_attachments_get_to_an_agent_on_another_machine(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    new_worker(*SHOP)
    session = shared.session("chat", owner="ada")
    (tmp_path / "notes.txt").write_bytes(b"abc" * 1000)
    picture = Attachment(bytes(range(256)) * 4096, "image/png", "a.png")
    task = await session.ask("x", agent="size_up", attachments=[tmp_path / "notes.txt", picture])
    await task.wait(timeout=60)
    assert task.result == "notes.txt text/plain 3000 {} a.png image/png 1048576 {}".format(
        sum(b"abc" * 1000) % 251, sum(picture.data) % 251
    ), task.error
    left = await asyncio.to_thread(rows, shared.home.address, "SELECT FROM backburner.attachment")
    assert left == [], "they go with its end"
    for _ in range(2):  # the second time it is known, and has ended
        asked = await session.ask("x", agent="patient", id="bg_once", attachments=[picture])
        await asked.stop()
        await asked.wait(timeout=60)
    left = await asyncio.to_thread(rows, shared.home.address, "SELECT FROM backburner.attachment")
    assert left == [], "and none come after it"
    large = Attachment(bytes(8 * 2**20 + 1), "text/plain")
    with pytest.raises(LimitReached, match="8 MiB"):
        await session.ask("x", agent="size_up", attachments=[large])


def rows(address: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(address) as connection:
        return connection.execute(sql.encode()).fetchall()


async def test_e9_a_schedule_starts_a_tool_where_it_is(
    shared: Backburner, new_worker: NewWorker
) -> None:
    new_worker(*SHOP)
    session = shared.session("chat")
    soon = datetime.now(UTC) + timedelta(seconds=1)
    await session.schedule(soon, {"tool": "shout", "args": {"text": "now"}})
    await wait_until_async(session.tasks)
    (task,) = await session.tasks()
    await task.wait(timeout=60)
    assert task.result == "NOW"


# Limits


async def test_e3_five_of_a_session_however_many_applications_race(
    shared: Backburner, new_application: NewApplication, folder: Path
) -> None:
    racing = [new_application() for _ in range(3)]
    start = ("chat", "hold", {"folder": str(folder)})
    for each in racing:
        each.ask(*[start] * 5)
    answers = [line for each in racing for line in await asyncio.to_thread(each.answers)]
    refused = [line for line in answers if line == "limit"]
    assert (len(answers), len(refused)) == (15, 10), answers
    (folder / "go").touch()
    for task in await shared.session("chat").tasks():
        await task.wait(timeout=60)


async def test_e3_no_worker_has_more_than_its_places_and_the_others_get_the_rest(
    shared: Backburner, new_worker: NewWorker, folder: Path
) -> None:
    for _ in range(2):
        new_worker(*SHOP, BACKBURNER_TOOLS_PER_WORKER="3")
    tasks = [
        await shared.session(f"chat-{n}").spawn("hold", {"folder": str(folder)}) for n in range(8)
    ]
    await wait_until_async(lambda: begun(folder) == 6)
    pids = [path.name.split("-")[2] for path in folder.glob("began-*")]
    assert sorted(pids.count(pid) for pid in set(pids)) == [3, 3]
    states = [(await task.refresh()).state for task in tasks]
    assert sorted(map(str, states)) == ["queued"] * 2 + ["running"] * 6
    (folder / "go").touch()
    for task in tasks:
        assert (await task.wait(timeout=60)).state is State.SUCCEEDED


async def _is(task: Task, state: State) -> bool:
    return (await task.refresh()).state is state
