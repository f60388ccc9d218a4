"""A1 to A9: shell jobs that a chat starts and manages, through `manage_bg_jobs`."""

from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner, NotAllowed, Session, SignalState, State, Task, UsageError
from backburner.model.limits import OUTPUT_MAX_CHARS
from backburner.runtime.followup import DELIBERATE
from backburner.tools.dialects.chat import act_on, start_marked
from backburner.tools.dialects.manage_bg_jobs import ALIASES
from backburner.tools.seen import Answer
from tests.faults.victims import processes_with, unique_seconds
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

FIELDS = {
    "id", "session_id", "command", "status", "killed", "timed_out", "died", "pid", "started_at",
    "ended_at", "exit_code", "max_runtime_s", "followed_up", "log_path", "exit_path",
}  # fmt: skip


async def manage(session: Session, action: str, job_id: str | None = None) -> Answer:
    arguments = {"action": action} | ({} if job_id is None else {"job_id": job_id})
    return await session.toolset(dialect="manage_bg_jobs").call("manage_bg_jobs", arguments)


async def running(session: Session, command: str) -> Task:
    """A job whose process is there."""
    task = await session.run(command)

    async def started() -> bool:
        return (await task.refresh()).state is State.RUNNING

    await wait_until_async(started)
    return task


def without_signals(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != "signals"}


@pytest.mark.parametrize("marker", ["#!bg", "# background", "@BACKGROUND", "# @background"])
async def test_a1_a_block_with_a_marker_starts_detached_and_says_how_to_go_on(
    shared_home: Path, marker: str, request: pytest.FixtureRequest
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(request.node.name)
        answer = await start_marked(session, f"\n {marker} \necho $((6 * 7))\n", title="sums")
        assert answer is not None
        (task,) = await session.tasks()
        assert answer.data["id"] == task.id
        assert answer.data["command"] == "echo $((6 * 7))\n", "the marker's line is not run"
        for words in (task.id, "Do not poll", "call manage_bg_jobs yourself", "never print tool"):
            assert words in answer.text
        await task.wait(30)
        assert (await task.output()).text == "42\n"


async def test_a1_a_block_without_a_marker_starts_nothing(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("unmarked")
        for text in ("echo hello", "", "echo\n#!bg", "#bgcolor\nls"):
            assert await start_marked(session, text) is None
        with pytest.raises(UsageError, match="empty"):
            await start_marked(session, "#!bg\n")
        assert await session.tasks() == []


async def test_a1_a_block_that_cannot_start_says_so(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        answer = await start_marked(bb.session("nowhere"), "#!bg\nls", cwd="/does/not/exist")
        assert answer is not None
        assert answer.is_error
        assert " died: " in answer.text
        assert (answer.data["status"], answer.data["exit_code"]) == ("failed", -1)


async def test_a2_the_record_of_a_job_has_these_fields(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("fields")
        task = await running(session, f"sleep {unique_seconds()}")
        (record,) = (await manage(session, "list")).data["jobs"]
        assert record.keys() == FIELDS
        assert record == {
            "id": task.id,
            "session_id": "fields",
            "command": task.record.spec["command"],
            "status": "running",
            "killed": False,
            "timed_out": False,
            "died": False,
            "pid": task.record.pid,
            "started_at": task.document()["started_at"],
            "ended_at": None,
            "exit_code": None,
            "max_runtime_s": 3600,
            "followed_up": False,
            "log_path": task.document()["paths"]["log"],
            "exit_path": task.document()["paths"]["result"],
        }
        await task.stop(force=True)


async def test_a2_the_code_is_at_exit_path_and_the_output_at_log_path(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("paths")
        task = await session.run("echo said; exit 7", max_runtime=60)
        await task.wait(30)
        data = (await manage(session, "output", task.id)).data
        assert (data["status"], data["exit_code"], data["max_runtime_s"]) == ("failed", 7, 60)
        assert '"exit_code": 7' in Path(data["exit_path"]).read_text()
        assert Path(data["log_path"]).read_text() == data["output"] + "\n" == "said\n"
        assert data["ended_at"] >= data["started_at"]


async def test_a2_followed_up_once_the_end_is_told(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("told")
        task = await session.run("true")
        await task.wait(30)
        tools = session.toolset(dialect="manage_bg_jobs")
        first = await tools.call("manage_bg_jobs", {"action": "list"})
        assert [each["task"] for each in first.data["signals"]] == [task.id]
        assert not first.data["jobs"][0]["followed_up"], "shown, and not yet known to be read"
        second = await tools.call("manage_bg_jobs", {"action": "list"})
        assert second.data["jobs"][0]["followed_up"]
        assert "signals" not in second.data


async def test_a2_a_very_long_command_is_shown_in_part(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("long")
        task = await session.run(f": {'x' * 100_000}")
        await task.wait(30)
        answer = await manage(session, "list")
        assert len(answer.data["jobs"][0]["command"]) == 2_000
        assert len(answer.text) < 400


async def test_a4_kill_ends_the_whole_tree_and_the_chat_is_not_continued(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("kill")
        seconds = unique_seconds()
        task = await running(session, f"sleep {seconds} & (setsid sleep {seconds} &) ; wait")
        await wait_until_async(lambda: len(processes_with(seconds)) == 2)
        answer = await manage(session, "kill", task.id)
        assert processes_with(seconds) == []
        assert not answer.is_error
        assert " was killed " in answer.text
        assert answer.data.keys() == FIELDS, "no signal rides along"
        for name, value in {
            "status": "failed", "killed": True, "timed_out": False, "died": False,
            "exit_code": -1, "followed_up": True,
        }.items():  # fmt: skip
            assert answer.data[name] == value, name
        (signal,) = await session.told()
        assert (signal.record.state, signal.record.reason) == (SignalState.DROPPED, DELIBERATE)


async def test_a4_a_finished_job_comes_back_as_it_is(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("finished")
        task = await session.run("exit 4")
        await task.wait(30)
        answer = await manage(session, "kill", task.id)
        assert not answer.is_error
        assert answer.data["status"] == "failed"
        assert answer.data["exit_code"] == 4
        assert not answer.data["killed"]
        assert "failed: exit code 4" in answer.text
        assert (await task.refresh()).state is State.FAILED


async def test_a4_a_kill_that_races_with_the_end_gives_the_real_record(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("race")
        for number in range(8):
            task = await session.run("exit 5")
            if number % 2:
                await wait_until_async(lambda task=task: _has_begun(task))
            data = (await manage(session, "kill", task.id)).data
            await task.refresh()
            ending = (data["killed"], data["exit_code"], data["followed_up"])
            if task.state is State.CANCELED:
                assert ending == (True, -1, True)
            else:
                assert ending == (False, 5, False)


async def _has_begun(task: Task) -> bool:
    return (await task.refresh()).state is not State.QUEUED


async def test_a5_a_timeout_is_told_as_one(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("timeout")
        task = await session.run(f"sleep {unique_seconds()}", max_runtime=0.1)
        await task.wait(30)
        answer = await manage(session, "output", task.id)
        assert " timed out: " in answer.text
        assert (answer.data["timed_out"], answer.data["exit_code"]) == (True, -1)
        (signal,) = answer.data["signals"]
        assert signal["task"] == task.id, "the session is told"


async def test_a6_every_name_of_an_action_in_any_case(shared_home: Path) -> None:
    required = {
        "list": {"jobs", "ps", "status"},
        "output": {"read", "log", "logs", "tail"},
        "kill": {"stop", "cancel", "terminate"},
    }
    assert ALIASES.keys() == required.keys()
    assert all(names <= set(ALIASES[action]) for action, names in required.items())
    async with Backburner.open(shared_home) as bb:
        session = bb.session("aliases")
        task = await session.run("echo out")
        await task.wait(30)
        for action, names in ALIASES.items():
            expected = without_signals((await manage(session, action, task.id)).data)
            for name in names:
                for spelled in (name, name.upper(), f" {name.title()} "):
                    answer = await manage(session, spelled, task.id)
                    assert without_signals(answer.data) == expected, spelled


async def test_a6_an_empty_list_is_a_plain_sentence(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        answer = await manage(bb.session("empty"), "list")
        assert answer == Answer("There are no background jobs in this session.", {"jobs": []})


@pytest.mark.parametrize("action", ["list", "output", "kill"])
async def test_a6_the_job_of_another_session_is_not_found(shared_home: Path, action: str) -> None:
    async with Backburner.open(shared_home) as bb:
        name = f"theirs-{action}"
        theirs = await bb.session(name, owner="ada").run(
            f"sleep {unique_seconds()} # hush", title="hidden title"
        )
        for session in (
            bb.session("ours", owner="ada"),
            bb.session(name, owner="bob"),
        ):
            answer = await manage(session, action, theirs.id)
            none = await manage(session, action, "bg_0000000000000000")
            assert answer.is_error
            assert answer.data["error"]["code"] == "not_found"
            assert answer.text == none.text.replace("bg_0000000000000000", theirs.id)
            assert (await manage(session, "list")).data == {"jobs": []}
        assert not (await theirs.refresh()).state.terminal
        await theirs.stop(force=True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "action: it is missing"),
        ({"action": "kill"}, "kill needs job_id"),
        ({"action": "logs"}, "output needs job_id"),
        ({"action": "explode"}, "'explode' is no action (use list, output, kill)"),
        ({"action": ""}, "is no action (use list, output, kill)"),
        ({"action": "x" * 100_000}, "is no action (use list, output, kill)"),
        ({"action": 3}, "action: it has to be a text"),
        ({"action": "output", "job_id": 3}, "job_id: it has to be a text"),
        ({"action": "output", "job_id": ""}, "'' is not found in this session"),
        ({"action": "kill", "job_id": "../../etc/passwd"}, "is not found in this session"),
        ({"action": "kill", "job_id": "y" * 900_000}, "is not found in this session"),
        ({"action": "kill", "job_id": "z" * 2_000_000}, "longer than 1 MiB"),
        ({"action": "list", "all": True}, "'all': no such argument"),
        (["list"], "the arguments are no object"),
        ("list", "the arguments are no JSON"),
    ],
    ids=str,
)
async def test_a6_bad_input_is_an_error_that_says_what_is_wrong(
    shared_home: Path, arguments: Any, text: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        tools = bb.session("bad").toolset(dialect="manage_bg_jobs")
        answer = await tools.call("manage_bg_jobs", arguments)
        assert answer.is_error
        assert text in answer.text
        assert len(answer.text) < 400


async def test_a7_output_while_it_runs_and_after(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("output")
        silent = await running(session, f"sleep {unique_seconds()}")
        assert "has printed nothing yet" in (await manage(session, "output", silent.id)).text
        await silent.stop(force=True)
        task = await running(session, f"echo early; sleep {unique_seconds()}")

        async def printed() -> bool:
            return (await manage(session, "output", task.id)).data["output"] == "early"

        await wait_until_async(printed)
        assert " is running " in (await manage(session, "output", task.id)).text
        await task.stop(force=True)
        assert (await manage(session, "output", task.id)).data["output"] == "early"


async def test_a7_long_output_is_head_and_tail_and_says_what_is_left_out(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("flood")
        task = await session.run("seq 100000")
        await task.wait(30)
        output = (await manage(session, "output", task.id)).data["output"]
        assert len(output) <= OUTPUT_MAX_CHARS
        assert output.startswith("1\n2\n3\n")
        assert output.endswith("\n99999\n100000")
        assert "left out" in output


async def test_a9_a_viewer_and_a_plan_list_and_read_and_do_not_start_or_kill(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await running(bb.session("gated"), f"echo seen; sleep {unique_seconds()}")
        for session in (bb.session("gated", role="viewer"), bb.session("gated", mode="plan")):
            assert (await manage(session, "list")).data["jobs"][0]["id"] == task.id
            assert not (await manage(session, "output", task.id)).is_error
            answer = await manage(session, "kill", task.id)
            assert answer.data["error"]["code"] == "not_allowed"
            with pytest.raises(NotAllowed):
                await start_marked(session, "#!bg\ntouch started")
        dry = bb.session("gated", mode="dry_run")
        answer = await manage(dry, "kill", task.id)
        assert answer.text.startswith("[dry-run] would stop")
        assert answer.data["status"] == "running"
        started = await start_marked(dry, "#!bg\ntouch started")
        assert started is not None
        assert started.text.startswith("[dry-run] would run")
        assert [each.id for each in await bb.session("gated").tasks()] == [task.id]
        assert not (await task.refresh()).state.terminal
        await task.stop(force=True)


async def test_a10_a_short_message_acts_where_one_job_is_meant(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("messages")
        build = await running(session, f"echo built; sleep {unique_seconds()}")

        async def printed() -> bool:
            return bool((await build.output()).text)

        await wait_until_async(printed)
        for text in ("is the job done?", "list my jobs"):
            answer = await act_on(session, text)
            assert answer is not None
            assert [each["id"] for each in answer.data["jobs"]] == [build.id]
            assert " is running " in answer.text
        answer = await act_on(session, "check the job output")
        assert answer is not None
        assert answer.data["output"] == "built"
        answer = await act_on(session, "Now kill that background job.")
        assert answer is not None
        assert (answer.data["id"], answer.data["killed"]) == (build.id, True)
        for text in ("run this in the background", "find me a job listing", ""):
            assert await act_on(session, text) is None


async def test_a10_where_several_are_meant_it_asks_back_and_ends_nothing(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("several")
        tasks = [await running(session, f"sleep {unique_seconds()}") for _ in range(2)]
        answer = await act_on(session, "stop the job")
        assert answer is not None
        assert answer.text.startswith("Which ")
        assert {each["id"] for each in answer.data["jobs"]} == {task.id for task in tasks}
        for task in tasks:
            assert task.id in answer.text
            assert not (await task.refresh()).state.terminal
        answer = await act_on(session, f"kill {tasks[0].id}")
        assert answer is not None
        assert answer.data["killed"]
        answer = await act_on(session, "kill that job")
        assert answer is not None
        assert answer.data["id"] == tasks[1].id, "the only one that is left"


async def test_a10_without_a_job_it_says_so(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        for text in ("stop the job", "list my jobs"):
            answer = await act_on(bb.session("no jobs"), text)
            assert answer is not None
            assert answer.text.startswith(("There are no", "There is no"))
            assert answer.data == {"jobs": []}
