"""C1 to C5: BgTaskList, BgTaskOutput and BgTaskStop."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from backburner import AgentRequest, Backburner, Context, Question, Session, State, Task
from backburner.tools.dialects.bg_task import LAST_LINES, start
from backburner.tools.seen import Answer
from tests.faults.victims import unique_seconds
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

FUNCTIONS = "tests.tools.dialects.functions"
DESCRIBED = {"id", "description", "kind", "status", "started_at", "duration_s"}


async def call(session: Session, name: str, **arguments: Any) -> Answer:
    return await session.toolset(dialect="bg_task").call(name, arguments)


async def ended(task: Task) -> Task:
    return await task.wait(30)


async def printed(task: Task, text: str) -> None:
    async def there() -> bool:
        return text in (await task.output()).text

    await wait_until_async(there)


async def test_c1_the_list_has_every_kind_newest_first_with_the_total(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:

        @bb.tool(background=True)
        async def closure() -> str:
            return "done"

        def answering(request: AgentRequest, context: Context) -> str:
            return "an answer"

        bb.agent("answering", answering)
        session = bb.session("kinds")
        tasks = [
            await ended(await start(session, "true", title="a shell job")),
            await ended(await session.call(f"{FUNCTIONS}:both", {"n": 1}, title="a call")),
            await ended(await session.spawn("closure")),
            await ended(await session.ask("say something", agent="answering")),
            await start(session, f"sleep {unique_seconds()}", title="goes on"),
        ]
        await wait_until_async(lambda: _running(tasks[-1]))
        answer = await call(session, "BgTaskList")
        listed = answer.data["tasks"]
        assert answer.data["total"] == 5
        assert answer.text.splitlines()[5] == "5 in total"
        assert all(each.keys() == DESCRIBED for each in listed)
        assert [each["id"] for each in listed] == [task.id for task in reversed(tasks)]
        assert [(each["kind"], each["status"], each["description"]) for each in listed] == [
            ("bash", "running", "goes on"),
            ("subagent", "completed", "say something"),
            ("python", "completed", "Closure"),
            ("python", "completed", "a call"),
            ("bash", "completed", "a shell job"),
        ]
        for task, each in zip(reversed(tasks), listed, strict=True):
            assert each["started_at"] == task.document()["started_at"]
            assert each["duration_s"] >= 0
        for line, each in zip(answer.text.splitlines(), listed, strict=False):
            for name in ("id", "kind", "status", "started_at", "description"):
                assert each[name] in line
        await tasks[-1].stop(force=True)


async def _running(task: Task) -> bool:
    return (await task.refresh()).state is State.RUNNING


async def test_c1_a_running_task_is_listed_however_many_have_ended_since(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:

        @bb.tool(background=True)
        async def quick() -> None: ...

        session = bb.session("many")
        old = await start(session, f"sleep {unique_seconds()}")
        for _ in range(25):
            await ended(await session.spawn("quick"))
        listed = (await call(session, "BgTaskList")).data
        assert listed["total"] == len(listed["tasks"]) == 21
        assert listed["tasks"][-1]["id"] == old.id
        await old.stop(force=True)


async def test_c1_an_empty_list_is_a_plain_sentence(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        answer = await call(bb.session("empty"), "BgTaskList")
        assert answer == Answer("No background tasks in this session.", {"tasks": [], "total": 0})


async def test_c2_a_header_and_the_two_streams_apart(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("streams")
        task = await start(session, "echo to out; echo to err >&2; exit 3", title="streams")
        await ended(task)
        answer = await call(session, "BgTaskOutput", task_id=task.id)
        assert not answer.is_error
        told = answer.text.splitlines()[:9]  # the signal of its end comes after that
        assert told[2].startswith("duration: ")
        assert told == [
            f"{task.id} (streams)", "status: failed", told[2], "exit code: 3", "error: exit code 3",
            "[stdout]", "to out", "[stderr]", "to err",
        ]  # fmt: skip
        for name, value in {
            "status": "failed", "exit_code": 3, "stdout": "to out\n", "stderr": "to err\n",
            "timed_out": False,
        }.items():  # fmt: skip
            assert answer.data[name] == value, name


async def test_c2_python_tasks_keep_their_streams_apart(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:

        @bb.tool(background=True)
        def closure(context: Context) -> str:
            print("to out")
            print("[stderr] no mark of ours")
            print("to err", file=sys.stderr)
            context.output("stderr", "more\n")
            return "given"

        session = bb.session("python")
        called = await ended(await session.call(f"{FUNCTIONS}:both", {"n": 21}))
        data = (await call(session, "BgTaskOutput", task_id=called.id)).data
        assert (data["stdout"], data["stderr"], data["result"]) == ("to out\n", "to err\n", 42)
        spawned = await ended(await session.spawn("closure"))
        answer = await call(session, "BgTaskOutput", task_id=spawned.id)
        assert answer.data["stdout"] == "to out\n[stderr] no mark of ours\n"
        assert answer.data["stderr"] == "to err\nmore\n"
        assert "[result]\ngiven" in answer.text


async def test_c2_no_output_is_a_plain_line(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("silent")
        task = await start(session, f"sleep {unique_seconds()}")
        assert "No output yet." in (await call(session, "BgTaskOutput", task_id=task.id)).text
        await task.stop(force=True)
        assert "It printed nothing." in (await call(session, "BgTaskOutput", task_id=task.id)).text


async def test_c2_with_block_it_waits_for_the_end(shared_home: Path, tmp_path: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("block")
        gate = tmp_path / "gate"
        task = await start(session, f"mkfifo {gate}; echo ready; cat {gate}; exit 5")
        await printed(task, "ready")
        now = await call(session, "BgTaskOutput", task_id=task.id)
        assert now.data["status"] == "running", "it does not wait unless told"
        waiting = asyncio.create_task(call(session, "BgTaskOutput", task_id=task.id, block=True))
        await asyncio.to_thread(gate.write_text, "through\n")
        answer = await asyncio.wait_for(waiting, 30)
        assert (answer.data["status"], answer.data["exit_code"]) == ("failed", 5)
        assert answer.data["stdout"] == "ready\nthrough\n"
        assert not answer.data["timed_out"]


@pytest.mark.parametrize("timeout", [0.05, 0, -5])
async def test_c2_a_wait_that_runs_out_says_so_and_gives_the_last_100_lines(
    shared_home: Path, timeout: float
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(f"expired{timeout}")
        task = await start(session, f"seq 1000; sleep {unique_seconds()}")
        await printed(task, "1000")
        answer = await call(session, "BgTaskOutput", task_id=task.id, block=True, timeout=timeout)
        assert not answer.is_error
        assert answer.data["timed_out"]
        assert answer.data["status"] == "running"
        assert f"It has not ended within {max(timeout, 0):g} s" in answer.text
        assert answer.data["stdout"].splitlines() == [str(n) for n in range(901, 1001)]
        assert LAST_LINES == 100
        await task.stop(force=True)


def test_c2_the_defaults_are_in_the_descriptions() -> None:
    from backburner.tools.dialects import offers_of
    from backburner.tools.dialects.bg_task import WAIT_S

    output = {offer.name: offer for offer in offers_of("bg_task", None)}["BgTaskOutput"]
    described = {each.name: each.description for each in output.parameters}
    assert "false unless given" in described["block"]
    assert f"{WAIT_S:g} unless given" in described["timeout"]
    assert WAIT_S == 60


async def test_c3_a_stop_asks_politely_or_kills(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("stop")
        polite = await start(
            session, "trap 'echo bye; exit' TERM; echo up; while :; do sleep 1; done"
        )
        await printed(polite, "up")
        answer = await call(session, "BgTaskStop", task_id=polite.id)
        assert (answer.data["id"], answer.data["status"]) == (polite.id, "stopped")
        assert (await polite.output()).text == "up\nbye\n"
        deaf = await session.call(f"{FUNCTIONS}:stubborn")
        await printed(deaf, "deaf")
        answer = await call(session, "BgTaskStop", task_id=deaf.id, force=True)
        assert answer.text.startswith(f"{deaf.id} is stopped.")
        await deaf.refresh()
        assert (deaf.state, (await call(session, "BgTaskList")).data["total"]) == (
            State.CANCELED, 2,
        )  # fmt: skip


async def test_c3_a_finished_one_is_not_running_and_keeps_its_status(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("over")
        for command, status in (("true", "completed"), ("exit 2", "failed")):
            task = await ended(await start(session, command))
            for force in (False, True):
                answer = await call(session, "BgTaskStop", task_id=task.id, force=force)
                assert not answer.is_error
                assert answer.text.startswith(f"{task.id} is not running: {status}.")
                assert answer.data["status"] == status
        stopped = await start(session, f"sleep {unique_seconds()}")
        await call(session, "BgTaskStop", task_id=stopped.id, force=True)
        answer = await call(session, "BgTaskStop", task_id=stopped.id)
        assert answer.text.startswith(f"{stopped.id} is not running: stopped.")


async def test_c3_the_task_of_another_session_needs_its_approval(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        theirs, ours = bb.session("theirs", owner="ada"), bb.session("ours", owner="ada")
        task = await theirs.run(f"sleep {unique_seconds()}", title="deploy to production")
        stopping = asyncio.create_task(call(ours, "BgTaskStop", task_id=task.id, force=True))

        async def asked() -> Question | None:
            found = [each for each in await task.questions() if each.approval and each.open]
            return found[0] if found else None

        question = await wait_until_async(asked)
        read = await call(ours, "BgTaskOutput", task_id=task.id)
        assert read.data["error"]["code"] == "not_found", "nothing shows before it is granted"
        assert not stopping.done()
        await task.send("yes", question=question.id)
        answer = await asyncio.wait_for(stopping, 30)
        assert answer.data["status"] == "stopped"


async def test_c3_another_owners_task_is_not_found_in_the_same_words(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s", owner="ada").run(f"sleep {unique_seconds()}", title="hidden")
        other = bb.session("s", owner="bob")
        for name in ("BgTaskOutput", "BgTaskStop"):
            answer = await call(other, name, task_id=task.id)
            none = await call(other, name, task_id="bg_0000000000000000")
            assert answer.data["error"]["code"] == "not_found"
            assert answer.text == none.text.replace("bg_0000000000000000", task.id)
        await task.stop(force=True)


async def test_c3_plan_and_dry_run_stop_nothing(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await start(bb.session("modes"), f"sleep {unique_seconds()}")
        refused = await call(bb.session("modes", mode="plan"), "BgTaskStop", task_id=task.id)
        assert refused.data["error"]["code"] == "not_allowed"
        played = await call(bb.session("modes", mode="dry_run"), "BgTaskStop", task_id=task.id)
        assert played.text == f"[dry-run] would stop {task.id}"
        assert played.data["status"] == "running"
        assert not (await task.refresh()).state.terminal
        await task.stop(force=True)


async def test_c4_an_exception_is_recorded_and_shown(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("raises")
        task = await ended(await session.call(f"{FUNCTIONS}:fails"))
        answer = await call(session, "BgTaskOutput", task_id=task.id)
        assert answer.data["status"] == "failed"
        assert "error: ValueError: no good" in answer.text
        assert "Traceback" in answer.data["stderr"]


async def test_c5_list_and_output_are_read_only_and_parallel_and_stop_is_neither(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        tools = bb.session("hints").toolset(dialect="bg_task")
        assert tools.names == ["BgTaskList", "BgTaskOutput", "BgTaskStop"]
        assert [(offer.hints.readonly, offer.parallel) for offer in tools.offers] == [
            (True, True), (True, True), (False, False),
        ]  # fmt: skip
        annotations = [each["annotations"] for each in tools.schemas("mcp")]
        assert [each["readOnlyHint"] for each in annotations] == [True, True, False]
        assert annotations[2]["destructiveHint"]


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("BgTaskList", {"all": True}, "'all': no such argument (it takes none)"),
        ("BgTaskOutput", {}, "task_id: it is missing"),
        ("BgTaskOutput", {"task_id": None}, "task_id: it is missing"),
        ("BgTaskOutput", {"task_id": 5}, "task_id: it has to be a text"),
        ("BgTaskOutput", {"task_id": "bg_x", "block": "maybe"}, "block: it has to be true or"),
        ("BgTaskOutput", {"task_id": "bg_x", "timeout": "soon"}, "timeout: it has to be a number"),
        ("BgTaskOutput", {"task_id": "bg_x", "timeout": float("nan")}, "timeout: it has to be"),
        ("BgTaskOutput", {"task_id": "bg_x"}, "'bg_x' is not found in this session"),
        ("BgTaskOutput", {"task_id": "y" * 900_000}, "is not found in this session"),
        ("BgTaskStop", {"task_id": ""}, "'' is not found in this session"),
        ("BgTaskStop", {"task_id": "y" * 900_000}, "is not found in this session"),
        ("BgTaskStop", {"task_id": "bg_x", "force": 1}, "force: it has to be true or false"),
        ("BgTaskStop", {"task_id": "bg_x", "signal": 9}, "'signal': no such argument"),
        ("BgTaskStart", {}, "there is no tool 'BgTaskStart'"),
    ],
    ids=str,
)  # fmt: skip
async def test_c2_c3_bad_input_is_an_error_that_says_what_is_wrong(
    shared_home: Path, name: str, arguments: dict[str, Any], text: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        answer = await call(bb.session("bad"), name, **arguments)
        assert answer.is_error
        assert text in answer.text
        assert len(answer.text) < 400
