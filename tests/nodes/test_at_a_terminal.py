"""X10: what people and agents sit before, over the record of many machines."""

import sys
from pathlib import Path

import pytest

from backburner import Backburner, State
from tests.cli.program import Program
from tests.mcp.client import about, as_task, connected, program, until
from tests.mcp.wrap.conftest import WRAPPED, appear
from tests.nodes.conftest import NewWorker

pytestmark = [pytest.mark.slow]

ENTER, CTRL_D = "\r", "\x04"
PROMPT = "›"


@pytest.fixture
def backburner(backburner: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The real program, in a terminal that does not say where its cursor is."""
    monkeypatch.setenv("PROMPT_TOOLKIT_NO_CPR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    return backburner


def test_b5_top_shows_what_another_machine_runs_answers_it_and_stops_it(
    backburner: Program, new_worker: NewWorker, tmp_path: Path
) -> None:
    new_worker()
    line = f"cd {tmp_path}; echo its output; read line; echo got $line; sleep 600"
    task = backburner("run", "--stdin", "--title", "a job", "--", line).id
    with backburner.in_terminal("top", columns=100, lines=30) as terminal:
        terminal.read_until("its output")
        terminal.type("A")
        terminal.read_words("a line for a job")
        terminal.type("hello" + ENTER)
        terminal.read_words("got hello")
        terminal.type("x")
        terminal.read_words("stop a job?")
        terminal.type("y")
        terminal.read_words("stopped")
        terminal.type("q")
        assert "Traceback" not in terminal.read_to_end()
        assert terminal.process.returncode == 0
    assert backburner("show", task, "--json").json["state"] == "canceled"


def test_b3_b8_a_chat_whose_agent_works_on_another_machine(
    backburner: Program, new_worker: NewWorker, tmp_path: Path
) -> None:
    new_worker()
    backburner("run", "--id", "early", "--title", "an early bird", "--", "sleep 600")
    options = ("--agent", "echo", "--folder", str(tmp_path))
    with backburner.in_terminal("gateway", "terminal", *options) as terminal:
        terminal.read_words("an early bird", then=PROMPT)
        terminal.type("/bg count to three" + ENTER)
        terminal.read_words("Task ID:", then="bg_")
        terminal.read_words("Background task complete", then=PROMPT)
        terminal.type("good morning" + ENTER)
        terminal.read_words("The person says now", then=PROMPT)
        terminal.type("stop the job" + ENTER)
        terminal.read_words("⏹ early", then=PROMPT)
        terminal.type(CTRL_D)
        assert "Traceback" not in terminal.read_to_end()
        assert terminal.process.returncode == 0


async def test_x6_calls_of_a_wrapped_server_are_tasks_that_other_machines_see_and_stop(
    home: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_HOME", address)
    monkeypatch.setenv("WRAPPED_NOTES", str(tmp_path / "notes"))
    (tmp_path / "notes").touch()
    flag, wrap = tmp_path / "flag", ("-m", "backburner.cli", "mcp", "--budget", "300ms", "--wrap")
    async with (
        Backburner.open(address) as bb,
        connected(program(*wrap, "--", sys.executable, WRAPPED), tasks=True) as client,
    ):
        first, second = [
            await as_task(client, "until", {"path": str(path)})
            for path in (flag, tmp_path / "never")
        ]
        assert (await about(client.session, "tasks/get", first.task_id))["status"] == "working"
        tasks = {task.id: task for task in await bb.session("test").tasks()}
        assert tasks[first.task_id].state is State.RUNNING
        appear(flag)
        result = (await until(client.session, first.task_id, "completed"))["result"]
        assert result["structuredContent"] == {"result": "found it"}
        await tasks[second.task_id].stop()
        await until(client.session, second.task_id, "cancelled")
