"""A task in a few words, and the exit status that stands for it."""

from dataclasses import replace

import pytest

from backburner.cli import exits, phrases
from backburner.model.clock import SECOND
from backburner.model.ending import Ending, TaskError
from backburner.model.states import ErrorKind, Kind, State
from backburner.model.task import Progress, StopRequest, Task

RUNNING = Task(
    seq=1,
    id="bg_1",
    owner="local",
    session="test",
    kind=Kind.SHELL,
    title="tests",
    spec={},
    state=State.RUNNING,
    attempt=1,
    created_at=10 * SECOND,
    started_at=11 * SECOND,
)


def ended(ending: Ending) -> Task:
    return replace(
        RUNNING,
        state=ending.state,
        error=ending.error,
        exit_code=ending.exit_code,
        finished_at=14 * SECOND,
    )


@pytest.mark.parametrize(
    ("ending", "words", "status"),
    [
        (Ending.exited(0), "exit 0", 0),
        (Ending.exited(3), "exit 3", 3),
        (Ending.succeeded(), "done", 0),
        (Ending.canceled(), "stopped", exits.STOPPED),
        (Ending.failed(ErrorKind.TIMEOUT, "…"), "timed out", 1),
        (Ending.failed(ErrorKind.KILLED, "…"), "killed", 1),
        (Ending.failed(ErrorKind.ORPHANED, "…"), "died", 1),
        (Ending.failed(ErrorKind.SPAWN, "…"), "could not start", 1),
        (Ending.failed(ErrorKind.ERROR, "…"), "error", 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a5_e10_every_ending_has_its_words_and_its_status(
    ending: Ending, words: str, status: int
) -> None:
    task = ended(ending)
    assert phrases.outcome(task) == words
    assert exits.status_of(task) == status


def test_what_is_left_behind_is_said() -> None:
    task = replace(ended(Ending.exited(0)), leftovers=2)
    assert phrases.outcome(task) == "exit 0, 2 left behind"


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (Progress(4, 10, "files", "unpacking"), "40% (4/10 files) unpacking"),
        (Progress(2.5, 10), "25% (2.5/10)"),
        (Progress(7, None, "pages"), "7 pages"),
        (Progress(7, 0), "7"),
    ],
)
def test_progress_in_words(progress: Progress, words: str) -> None:
    assert phrases.outcome(replace(RUNNING, progress=progress)) == words


def test_an_active_task_says_what_it_is_doing() -> None:
    assert phrases.outcome(RUNNING) == ""
    assert phrases.outcome(replace(RUNNING, detail="compiling")) == "compiling"
    asked = replace(RUNNING, detail="compiling", stop=StopRequest(12 * SECOND, 5))
    assert phrases.outcome(asked) == "stopping"


def test_durations_survive_a_clock_that_was_set_back() -> None:
    assert phrases.since(20 * SECOND, 10 * SECOND) == "0.0s"
    assert phrases.took(RUNNING, 5 * SECOND) == "0.0s"


def test_a_sentence_for_each_task() -> None:
    assert phrases.sentence(RUNNING, 0) == "tests (bg_1) is running"
    assert phrases.sentence(ended(Ending.exited(0)), 0) == "tests (bg_1) finished after 3.0s"


def test_of_several_tasks_the_first_that_is_not_done_counts() -> None:
    assert exits.first_not_done([0, 0]) == 0
    assert exits.first_not_done([0, 5, 6]) == 5
    assert exits.status_of(RUNNING) == exits.TIME_IS_UP
    assert exits.status_of(replace(RUNNING, error=TaskError(ErrorKind.EXIT, ""))) == 124
