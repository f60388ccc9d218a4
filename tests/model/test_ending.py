"""One end, five spellings: the table of endings in the contract, cell by cell (A2, C1, D3, E10)."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model.ending import ENDINGS, Ending, spelling
from backburner.model.states import ErrorKind, State


@dataclass(frozen=True)
class Row:
    """One row of the contract. `exit_code` and `job_code` may be `n`: the job's own."""

    happened: str
    ending: Ending
    state: str
    error_kind: str | None
    exit_code: int | None
    job_status: str
    job_flag: str | None
    job_code: int | None
    bg_task: str
    check_background_tool: str
    spawn_background: str
    mcp: str
    mcp_is_error: bool


def failed(kind: ErrorKind) -> Ending:
    return Ending.failed(kind, "because")


# fmt: off
TABLE = [
    Row("ended well", Ending.exited(0), "succeeded", None, 0,
        "done", None, None, "completed", "completed", "succeeded", "completed", False),
    Row("exit code not 0", Ending.exited(3), "failed", "exit", 3,
        "failed", None, None, "failed", "error", "failed", "completed", True),
    Row("exception, tool error", failed(ErrorKind.ERROR), "failed", "error", None,
        "failed", None, None, "failed", "error", "failed", "completed", True),
    Row("stopped on request", Ending.canceled(), "canceled", None, None,
        "failed", "killed", -1, "stopped", "cancelled", "canceled", "cancelled", False),
    Row("past max runtime", failed(ErrorKind.TIMEOUT), "failed", "timeout", None,
        "failed", "timed_out", -1, "failed", "error", "failed", "completed", True),
    Row("killed from outside", failed(ErrorKind.KILLED), "failed", "killed", None,
        "failed", "died", -1, "failed", "error", "failed", "completed", True),
    Row("worker or machine died", failed(ErrorKind.ORPHANED), "failed", "orphaned", None,
        "failed", "died", -1, "failed", "error", "failed", "failed", False),
    Row("could not start", failed(ErrorKind.SPAWN), "failed", "spawn", None,
        "failed", "died", -1, "failed", "error", "failed", "failed", False),
]
# fmt: on

HAPPENED = [row.happened for row in TABLE]


@pytest.mark.parametrize("row", TABLE, ids=HAPPENED)
def test_e10_an_ending_is_recorded_as_the_contract_says(row: Row) -> None:
    assert row.ending.state == row.state
    assert (row.ending.error.kind if row.ending.error else None) == row.error_kind
    assert row.ending.exit_code == row.exit_code


@pytest.mark.parametrize("row", TABLE, ids=HAPPENED)
def test_a2_an_ending_as_manage_bg_jobs_spells_it(row: Row) -> None:
    job = spelling(row.ending.state, row.ending.error).job
    assert (job.status, job.flag, job.exit_code) == (row.job_status, row.job_flag, row.job_code)


@pytest.mark.parametrize("row", TABLE, ids=HAPPENED)
def test_c1_d3_e10_an_ending_as_the_other_tool_sets_spell_it(row: Row) -> None:
    spelled = spelling(row.ending.state, row.ending.error)
    assert spelled.bg_task == row.bg_task
    assert spelled.check_background_tool == row.check_background_tool
    assert spelled.spawn_background == row.spawn_background
    assert (spelled.mcp, spelled.mcp_is_error) == (row.mcp, row.mcp_is_error)


def test_e10_the_table_in_the_code_has_these_rows_and_no_other() -> None:
    assert set(ENDINGS) == {
        (State(row.state), ErrorKind(row.error_kind) if row.error_kind else None) for row in TABLE
    }


@pytest.mark.parametrize("row", TABLE, ids=HAPPENED)
def test_a2_the_words_are_those_that_the_tool_sets_know(row: Row) -> None:
    spelled = spelling(row.ending.state, row.ending.error)
    assert spelled.job.status in {"done", "failed"}
    assert spelled.job.flag in {None, "killed", "timed_out", "died"}
    assert spelled.bg_task in {"completed", "failed", "stopped"}
    assert spelled.check_background_tool in {"completed", "cancelled", "error"}
    assert spelled.spawn_background in {"succeeded", "failed", "canceled"}
    assert spelled.mcp in {"completed", "failed", "cancelled"}


@given(st.integers(-255, 255), st.none() | st.text(min_size=1))
def test_a3_an_exit_code_decides_between_success_and_failure(
    code: int, message: str | None
) -> None:
    ending = Ending.exited(code, message)
    assert ending.exit_code == code
    if code == 0:
        assert (ending.state, ending.error) == (State.SUCCEEDED, None)
    else:
        assert ending.state is State.FAILED
        assert ending.error is not None
        assert ending.error.kind is ErrorKind.EXIT
        assert ending.error.message == (message or f"exit code {code}")


def test_e10_an_exit_without_a_code_cannot_be_written() -> None:
    with pytest.raises(ValueError, match=r"Ending\.exited"):
        Ending.failed(ErrorKind.EXIT, "exit code 3")


def test_an_ending_keeps_what_the_work_gave() -> None:
    good = Ending.succeeded(summary="42 passed", result={"passed": 42})
    assert (good.state, good.summary, good.result, good.exit_code) == (
        State.SUCCEEDED, "42 passed", {"passed": 42}, None,
    )  # fmt: skip
    bad = Ending.failed(ErrorKind.ERROR, "no", result=[1])
    assert (bad.state, bad.result, bad.exit_code) == (State.FAILED, [1], None)
