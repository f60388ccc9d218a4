"""Tools and command-line agents as processes of the keeper (C4, E1, E6, E11)."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner, ErrorKind, EventKind, Kind, State, Task
from backburner.model.home import Home
from backburner.model.limits import RESULT_MAX_BYTES
from backburner.runtime.tasks import StartOptions
from backburner.work import python
from backburner.work.assignment import Assignment, base_spec, launch_from_here
from tests.work.child import functions

pytestmark = pytest.mark.slow

MODULE = "tests.work.child.functions"


async def run_tool(bb: Backburner, name: str, /, **arguments: Any) -> Task:
    """An importable tool as a process, to its end."""
    work = python.tool_assignment(
        name,
        f"{MODULE}:{name}",
        arguments,
        bb.settings,
        cwd=str(Path.cwd()),
        readonly=False,
        idempotent=True,
    )
    session = bb.session("tools")
    record = await bb.tasks.start_process(session.scope, work, StartOptions())
    return await Task(bb, record).wait(60)


async def test_e1_an_importable_tool_runs_as_a_process(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await run_tool(bb, "crawl", url="https://example.org", depth=2)
        record = task.record
        assert (record.kind, task.state, task.exit_code) == (Kind.TOOL, State.SUCCEEDED, 0)
        assert (task.result, record.summary) == ({"url": "https://example.org"}, "seen")
        assert record.title == 'crawl(url="https://example.org", depth=2)'
        assert record.progress is not None
        assert record.progress.current == 2
        document = task.document()
        told = json.loads(Path(document["paths"]["result"]).read_text())
        assert told["raw_output"] == {"html": "<p>"}
        assert told["result"] == task.result, "the raw output never leaks into the result"
        assert [each["name"] for each in document["artifacts"]] == ["page.png"]


async def test_e6_the_output_of_a_tool_carries_its_stream(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await run_tool(bb, "crawl", url="x")
        text = (await task.output(raw=True)).text
        assert text == "[stdout] looking\n[stderr] warning\n[stdout] at x\n"


@pytest.mark.parametrize(
    ("how", "message", "result"),
    [
        ("told", "ToolError: the page is gone", None),
        ("connection", "github", None),
        ("else", "no", ["else"]),
    ],
)
async def test_e1_a_failed_tool_says_why(
    shared_home: Path, how: str, message: str, result: Any
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await run_tool(bb, "trouble", how=how)
        assert task.error is not None
        assert (task.error.kind, task.result, task.exit_code) == (ErrorKind.ERROR, result, None)
        assert message in task.error.message


async def test_e1_an_internal_error_is_logged_and_not_told(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await run_tool(bb, "trouble", how="internal")
        assert task.error is not None
        assert "internal error" in task.error.message
        assert "secret" not in json.dumps(task.document()) + (await task.output()).text
        log = Path(Home(shared_home).attempt(task.id, 1).internal)
        assert "/very/secret/disk 7" in log.read_text()
        assert stat.S_IMODE(log.stat().st_mode) == 0o600


async def test_e1_arguments_that_do_not_fit_any_more_could_not_start(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await run_tool(bb, "crawl", link="x")
        assert task.error is not None
        assert task.error.kind is ErrorKind.SPAWN
        assert "link" in task.error.message


async def test_e11_what_is_no_tool_any_more_could_not_start(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await run_tool(bb, "add", a=1, b=2)
        assert task.error is not None
        assert (task.error.kind, task.error.message) == (
            ErrorKind.SPAWN,
            f"{MODULE}:add is no tool any more",
        )


async def test_e11_the_keeper_starts_a_tool_with_what_its_worker_left(shared_home: Path) -> None:
    """One piece for all tools of an application: which tool, and with what, is in the record."""
    async with Backburner.open(shared_home) as bb:
        own = python.tool_assignment(
            "crawl",
            f"{MODULE}:crawl",
            {"url": "left"},
            bb.settings,
            cwd="/",
            readonly=False,
            idempotent=True,
        )
        launch = python.worker_launch(str(Path.cwd()))
        assert "left" not in (launch.stdin_text or "")
        work = Assignment(own.kind, own.shown, own.spec, launch)
        record = await bb.tasks.start_process(bb.session("s").scope, work, StartOptions())
        task = await Task(bb, record).wait(60)
        assert task.result == {"url": "left"}


def test_e11_a_decorated_function_is_still_a_function() -> None:
    assert functions.trouble("else").result == ["else"]


# Command-line agents


async def ask_command(
    bb: Backburner, program: str, *words: str, stdin_text: str | None = None
) -> Task:
    """An agent that is a program: this one of Python."""
    argv = [sys.executable, "-c", program, *words]
    cwd = str(Path.cwd())
    launch = launch_from_here(argv, cwd=cwd, env={}, separate_stderr=True, stdin_text=stdin_text)
    base = base_spec(bb.settings, cwd=cwd, env={}, separate_stderr=True)
    spec = {"agent": "program", "prompt": "hello", "command": argv, "depth": 0, **base}
    work = Assignment(Kind.AGENT, "hello", spec, launch)
    record = await bb.tasks.start_process(bb.session("agents").scope, work, StartOptions())
    return await Task(bb, record).wait(60)


async def test_b4_what_a_command_line_agent_prints_is_its_answer(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        program = "import sys; print('you said', sys.argv[1]); print('\\n\\n')"
        task = await ask_command(bb, program, "hello there")
        assert (task.state, task.exit_code) == (State.SUCCEEDED, 0)
        assert task.result == "you said hello there"


async def test_b4_a_prompt_may_be_read_from_standard_input(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        prompt = "ä" * 300_000
        program = "import sys; print(len(sys.stdin.read()))"
        task = await ask_command(bb, program, stdin_text=prompt)
        assert task.result == "300000"


async def test_b6_a_command_line_agent_that_fails_says_why(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        program = "import sys; print('half'); sys.exit('refused: token=abc')"
        task = await ask_command(bb, program)
        assert task.error is not None
        assert (task.error.kind, task.exit_code) == (ErrorKind.EXIT, 1)
        assert task.error.message == "exit code 1: refused: token=[redacted]"
        assert task.result is None


async def test_x3_a_long_answer_is_bounded(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await ask_command(bb, "print('ä' * 3_000_000)")
        assert task.state is State.SUCCEEDED
        assert 0 < len(str(task.result).encode()) <= RESULT_MAX_BYTES


async def test_x2_an_answer_is_in_the_record_and_in_the_file(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await ask_command(bb, "print('yes')")
        told = json.loads(Path(task.document()["paths"]["result"]).read_text())
        assert told["result"] == task.result == "yes"
        kinds = [event.kind async for event in task.events(follow=False)]
        assert kinds.count(EventKind.FINISHED) == 1
