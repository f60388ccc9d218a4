"""A1, A10, C2: `backburner.sync.dialects` is `backburner.dialects` without `await`."""

import inspect
from pathlib import Path

import pytest

from backburner import State, dialects, sync
from backburner.sync import dialects as twin

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@pytest.mark.parametrize("name", ["start_marked", "act_on", "start_bg_task"])
def test_a1_the_parameters_are_the_same(name: str) -> None:
    theirs, ours = getattr(dialects, name), getattr(twin, name)
    assert inspect.iscoroutinefunction(theirs)
    assert not inspect.iscoroutinefunction(ours)
    expected, given = (inspect.signature(each).parameters for each in (theirs, ours))
    assert [(each.name, each.kind, each.default) for each in given.values()] == [
        (each.name, each.kind, each.default) for each in expected.values()
    ]


def test_a1_a10_c2_a_chat_without_an_event_loop(home: Path) -> None:
    with sync.Backburner.open(home) as bb:
        session = bb.session("s")
        assert twin.start_marked(session, "ls") is None
        started = twin.start_marked(session, "#!bg\nsleep 600", title="server")
        assert started is not None
        stopped = twin.act_on(session, "kill that job")
        assert stopped is not None
        assert (stopped.data["id"], stopped.data["killed"]) == (started.data["id"], True)
        task = twin.start_bg_task(session, "echo out; echo err >&2").wait(30)
        assert task.state is State.SUCCEEDED
        answer = session.toolset(dialect="bg_task").call("BgTaskOutput", {"task_id": task.id})
        assert (answer.data["stdout"], answer.data["stderr"]) == ("out\n", "err\n")
