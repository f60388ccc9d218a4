"""`backburner.sync` is the same without `await`: the same calls, with the same parameters."""

import inspect
import threading
from pathlib import Path
from typing import Any

import pytest

from backburner import EventKind, NotFound, State, StoreUnusable, TimeIsUp, UsageError, app, sync
from backburner.sync import toolset as sync_toolset
from backburner.tools import toolset
from tests.faults.victims import unique_seconds
from tests.waiting import wait_until

PAIRS = [
    (app.Backburner, sync.Backburner),
    (app.Session, sync.Session),
    (app.Task, sync.Task),
    (app.Signal, sync.Signal),
    (app.Schedule, sync.Schedule),
    (toolset.Toolset, sync_toolset.Toolset),
]

NOT_MIRRORED = {
    *("accompany", "heard", "offers", "riding_along", "store", "runs", "agents"),
    *("known_tools", "startable", "take_in"),
}
"""The record itself, and what runs in the event loop, are asynchronous: for what has no handle."""


def public(kind: type[Any]) -> dict[str, Any]:
    """Methods and properties, as the class and its bases of ours define them."""
    ours = [each for each in kind.__mro__ if each.__module__.startswith("backburner.")]
    found = {name: value for each in reversed(ours) for name, value in vars(each).items()}
    return {
        name: value
        for name, value in found.items()
        if not name.startswith("_") and name not in NOT_MIRRORED
    }


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].__name__)
def test_every_public_call_is_there_with_the_same_parameters(
    pair: tuple[type[Any], type[Any]],
) -> None:
    """Names, kinds, defaults and annotations; and nothing that the other one does not have."""
    theirs, ours = map(public, pair)
    fields = {"record"}  # an attribute there, a property here
    assert theirs.keys() - fields == ours.keys() - fields
    for name, method in theirs.items():
        if isinstance(method, property):
            assert isinstance(ours[name], property), name
            continue
        expected = inspect.signature(getattr(pair[0], name)).parameters
        assert inspect.signature(getattr(pair[1], name)).parameters == expected, name
        assert not inspect.iscoroutinefunction(getattr(pair[1], name)), name


def test_the_whole_life_of_a_task_without_an_event_loop(shared_home: Path) -> None:
    with sync.Backburner.open(shared_home) as bb:
        session = bb.session("sync")
        task = session.run("echo out; exit 3", title="three")
        assert task.wait(timeout=30) is task
        assert (task.state, task.exit_code) == (State.FAILED, 3)
        assert task.output().text == "out\n"
        assert [event.kind for event in task.events()][-1] is EventKind.FINISHED
        assert session.task(task.id[:10]).record == task.record
        assert [each.id for each in session.tasks()] == [task.id]
        again = task.rerun().wait(30)
        assert (again.exit_code, again.record.title) == (3, "three")
        sleeper = session.run(f"sleep {unique_seconds()}")
        with pytest.raises(TimeIsUp):
            sleeper.wait(timeout=0.05)
        assert sleeper.stop(force=True).state is State.CANCELED
        with pytest.raises(NotFound):
            bb.session("another").task(task.id)
        heard: list[str] = []
        for signal in session.signals():
            assert signal.ack()
            heard.append(signal.task)
            if len(heard) == 3:
                break
        assert heard == [task.id, again.id, sleeper.id]
        assert list(session.signals(follow=False)) == []


def test_several_threads_share_one_door(shared_home: Path) -> None:
    """Each waits for a task of its own, and none for another."""
    with sync.Backburner.open(shared_home) as bb:
        codes: dict[int, int | None] = {}

        def start_and_wait(number: int) -> None:
            task = bb.session("threads").run(f"sleep 0.0{number}; exit {number}")
            codes[number] = task.wait(30).exit_code

        threads = [threading.Thread(target=start_and_wait, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert codes == {number: number for number in range(8)}


def test_a_door_that_is_closed_or_does_not_open_says_so(shared_home: Path, tmp_path: Path) -> None:
    """And leaves no thread behind."""
    bb = sync.Backburner.open(shared_home)
    with pytest.raises(UsageError, match="not open"):
        bb.session("s")
    with bb:
        bb.session("s")
    with pytest.raises(UsageError, match="not open"):
        bb.prune()
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnusable), sync.Backburner.open(tmp_path / "file"):
        pass
    # By name: threads of earlier tests may be ending at the same time.
    wait_until(
        lambda: not any(thread.name.startswith("backburner-") for thread in threading.enumerate()),
        message=lambda: f"{threading.enumerate()}",
    )
