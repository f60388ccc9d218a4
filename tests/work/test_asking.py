"""X5: the job's side of a question: waiting for a file, however it comes, or does not."""

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from backburner.model.errors import BackburnerError, LimitReached, TimeIsUp
from backburner.model.home import AttemptFolder
from backburner.work import asking
from backburner.work.asking import ask
from tests.waiting import wait_until


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    (tmp_path / "attempt").mkdir()
    return AttemptFolder(str(tmp_path / "attempt"))


@pytest.fixture(params=["inotify", "no instances", "no watches"])
def watching(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells, or cannot because too many watch."""

    def cannot(*_: object) -> int:
        raise OSError(28, "No space left on device")

    if request.param == "no instances":
        monkeypatch.setattr(asking, "Inotify", cannot)
    elif request.param == "no watches":
        monkeypatch.setattr(asking.Inotify, "add", cannot)
    monkeypatch.setattr(asking, "_WITHOUT_INOTIFY_S", 0.01)


def reported(folder: AttemptFolder) -> list[dict[str, dict[str, str]]]:
    return [json.loads(line) for line in Path(folder.report).read_text().splitlines()]


def put(folder: AttemptFolder, name: str, text: str) -> None:
    new = Path(folder.path) / "new"
    new.write_text(text)
    os.rename(new, f"{folder.answers}/{name}")


class Asked:
    """A question that is being asked in a thread."""

    def __init__(self, folder: AttemptFolder, timeout_s: float | None = None) -> None:
        self.answer: str | None = None
        self.error: BaseException | None = None
        self._ask: Callable[[], str] = lambda: ask(folder, "Why?", timeout_s)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        wait_until(lambda: os.path.exists(folder.report) and reported(folder))
        self.id = reported(folder)[0]["ask"]["id"]

    def _run(self) -> None:
        try:
            self.answer = self._ask()
        except BackburnerError as error:
            self.error = error

    def end(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.mark.usefixtures("watching")
@pytest.mark.parametrize("answer", ["yes", "", "two\r\nlines\n"])
def test_x5_the_answer_is_what_the_file_says(folder: AttemptFolder, answer: str) -> None:
    asked = Asked(folder)
    assert reported(folder) == [{"ask": {"id": asked.id, "question": "Why?"}}]
    put(folder, "other", "not this")
    (Path(folder.answers) / asked.id).with_name("unrelated").touch()
    new = Path(folder.path) / "new"
    new.write_bytes(answer.encode())
    os.rename(new, f"{folder.answers}/{asked.id}")
    asked.end()
    assert (asked.answer, asked.error) == (answer, None)
    assert len(reported(folder)) == 1


@pytest.mark.usefixtures("watching")
def test_x5_a_question_that_is_refused(folder: AttemptFolder) -> None:
    asked = Asked(folder)
    put(folder, f"{asked.id}.refused", "too many\n")
    asked.end()
    assert isinstance(asked.error, LimitReached)
    assert asked.error.message == "too many"


@pytest.mark.usefixtures("watching")
@pytest.mark.parametrize("how", ["ended", "forgotten"])
def test_x5_a_task_that_is_over_answers_nothing(folder: AttemptFolder, how: str) -> None:
    asked = Asked(folder)
    if how == "ended":
        (Path(folder.path) / "wrapper").touch()
        os.rename(f"{folder.path}/wrapper", folder.result)
    else:
        shutil.rmtree(folder.path)
    asked.end()
    assert asked.error is not None
    assert "the task has ended" in str(asked.error)


@pytest.mark.usefixtures("watching")
def test_x5_time_is_up_and_the_question_withdrawn(folder: AttemptFolder) -> None:
    asked = Asked(folder, 0.1)
    asked.end()
    assert isinstance(asked.error, TimeIsUp)
    assert reported(folder)[1:] == [{"withdraw": asked.id}]


def test_x5_an_answer_of_the_last_moment_counts(
    folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_append = asking.append

    def and_answered(path: str, key: str, value: str) -> None:
        true_append(path, key, value)
        if key == "withdraw":
            put(folder, json.loads(value), "just in time")

    monkeypatch.setattr(asking, "append", and_answered)
    assert ask(folder, "Why?", 0.01) == "just in time"
