"""What a child leaves: read by whoever comes, whatever the job has put in its place (C4)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder
from backburner.model.outcome import Outcome
from backburner.model.states import ErrorKind, State
from backburner.work.child import outcome
from backburner.work.child.carrying import ending_of
from backburner.work.child.request import Request
from backburner.work.result import problem_with

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

RETURNED = Ending.succeeded(exit_code=0, summary="well", result={"n": [1]})
RAISED = Ending.failed(ErrorKind.ERROR, "ValueError: no", result=[1])
NO_MODULE = Ending.failed(ErrorKind.SPAWN, "there is no module 'x'")


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    return AttemptFolder(str(tmp_path))


@pytest.mark.parametrize(("ending", "code"), [(RETURNED, 0), (RAISED, 1), (NO_MODULE, 1)])
def test_c4_what_was_left_is_read_and_applied(
    folder: AttemptFolder, ending: Ending, code: int
) -> None:
    assert outcome.leave(folder, ending, {"raw": 1}) == code
    left = outcome.read(folder)
    assert left is not None
    assert left.raw_output == {"raw": 1}
    once = left.applied_to(Ending.exited(code))
    assert once == ending
    assert left.applied_to(once) == ending, "the same when it is applied again"
    assert os.listdir(folder.path) == ["outcome"]


@pytest.mark.parametrize(
    "ended",
    [
        Ending.exited(3),
        Ending.failed(ErrorKind.KILLED, "SIGKILL"),
        Ending.failed(ErrorKind.TIMEOUT, "late"),
        Ending.canceled(),
    ],
)
def test_c4_a_process_that_ended_otherwise_ended_otherwise(
    folder: AttemptFolder, ended: Ending
) -> None:
    outcome.leave(folder, RETURNED)
    left = outcome.read(folder)
    assert left is not None
    told = left.applied_to(ended)
    assert (told.state, told.error, told.exit_code) == (ended.state, ended.error, ended.exit_code)
    assert told.result == {"n": [1]}, "what it returned is kept"


def test_c4_nothing_left_is_nothing(folder: AttemptFolder) -> None:
    assert outcome.read(folder) is None


def test_c4_a_pipe_or_a_link_in_its_place_is_not_waited_for_or_followed(
    folder: AttemptFolder, tmp_path: Path
) -> None:
    os.mkfifo(folder.outcome)
    assert outcome.read(folder) is None
    os.unlink(folder.outcome)
    elsewhere = AttemptFolder(str(tmp_path / "elsewhere"))
    os.mkdir(elsewhere.path)
    outcome.leave(elsewhere, RETURNED)
    os.symlink(elsewhere.outcome, folder.outcome)
    assert outcome.read(folder) is None


ERROR = {"kind": "error", "message": "x"}


@pytest.mark.parametrize(
    "ending",
    [
        3,
        {},
        {"status": "canceled", "exit_code": None},
        {"status": "running", "exit_code": None},
        {"status": "failed", "exit_code": None},
        {"status": "failed", "exit_code": 1, "error": ERROR | {"kind": "killed"}},
        {"status": "failed", "exit_code": 1, "error": ERROR | {"message": 7}},
        {"status": "canceled", "exit_code": 1, "error": ERROR},
        {"status": "succeeded", "exit_code": 0, "error": ERROR},
        {"status": "succeeded", "exit_code": 0, "summary": {}},
        {"status": "succeeded", "exit_code": 0, "result": float("nan")},
    ],
)
def test_c4_what_cannot_be_in_the_record_is_not_read(folder: AttemptFolder, ending: Any) -> None:
    Path(folder.outcome).write_text(json.dumps({"ending": ending}))
    assert outcome.read(folder) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "\0", "[" * 100_000])
def test_c4_what_is_no_outcome_at_all_is_not_read(folder: AttemptFolder, text: str) -> None:
    Path(folder.outcome).write_text(text)
    assert outcome.read(folder) is None


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_c4_a_result_is_taken_or_refused_and_never_breaks_anything(result: Any) -> None:
    reason = problem_with(result)
    try:
        json.dumps(result, allow_nan=False)
    except ValueError:
        assert reason is not None
    else:
        assert reason is None


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"inner": [value]}
    return value


def test_c4_a_result_that_nobody_could_read_is_refused() -> None:
    assert problem_with(nested(90)) is None
    assert "nested deeper" in (problem_with(nested(101)) or "")
    assert "no JSON" in (problem_with(nested(10_000)) or "")


def test_c4_long_texts_are_cut(folder: AttemptFolder) -> None:
    outcome.leave(folder, Ending.failed(ErrorKind.ERROR, "x\n" * 10_000))
    left = outcome.read(folder)
    assert left is not None
    assert left.ending.error is not None
    assert len(left.ending.error.message) <= outcome.MESSAGE_MAX_CHARS
    assert left.ending.state is State.FAILED


@pytest.mark.parametrize("success", [True, False])
def test_d9_a_secret_argument_is_in_no_summary(success: bool) -> None:
    request = Request("function", "a:b", {"account": {"password": "hush-hush"}}, [])
    given = Outcome(success=success, summary="signed in with hush-hush", result=1)
    ending = ending_of(given, request)
    assert "signed in with [redacted]" in json.dumps(ending.document())
    assert "hush-hush" not in json.dumps(ending.document())
