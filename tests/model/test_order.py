"""X9: what an order may say, which failures are tried again, and names of queues."""

import pytest

from backburner.model.ending import Ending
from backburner.model.errors import UsageError
from backburner.model.order import (
    LONGEST_RETRY_S,
    RETRIES_MAX,
    Order,
    check_queue,
    may_try_again,
    no_such_queue,
    retry_delay_s,
)
from backburner.model.states import ErrorKind


@pytest.mark.parametrize("retries", [-1, RETRIES_MAX + 1])
def test_x9_a_number_of_retries_has_bounds(retries: int) -> None:
    with pytest.raises(UsageError, match="from 0 to 1000"):
        Order(retries=retries)


def test_x9_after_failure_needs_something_to_come_after() -> None:
    assert Order(after=("a",), after_failure=True).after_failure
    with pytest.raises(UsageError):
        Order(after_failure=True)


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        (ErrorKind.TIMEOUT, True),
        (ErrorKind.KILLED, True),
        (ErrorKind.ORPHANED, True),
        (ErrorKind.SPAWN, False),
        (ErrorKind.ERROR, True),
    ],
)
def test_x9_which_failures_are_tried_again(kind: ErrorKind, again: bool) -> None:
    ending = Ending.failed(kind, "so it was")
    assert may_try_again(ending, 1) is again
    assert not may_try_again(ending, 0)


def test_x9_an_exit_code_is_tried_again_and_an_end_that_is_no_failure_is_not() -> None:
    assert may_try_again(Ending.exited(1), 1)
    assert not may_try_again(Ending.exited(0), 1)
    assert not may_try_again(Ending.canceled(), 1)


def test_x9_each_try_waits_twice_as_long_up_to_five_minutes() -> None:
    assert [retry_delay_s(failures) for failures in (1, 2, 3, 4)] == [1, 2, 4, 8]
    assert retry_delay_s(12) == retry_delay_s(RETRIES_MAX) == LONGEST_RETRY_S == 300


def test_x9_a_queue_has_a_name_and_a_width() -> None:
    check_queue("build-1", 1)
    with pytest.raises(UsageError, match="letters, digits"):
        check_queue("a b", 1)
    with pytest.raises(UsageError, match="from 1 to"):
        check_queue("build", 0)


def test_x9_who_names_an_unknown_queue_is_told_the_known_ones_and_how_to_make_one() -> None:
    assert no_such_queue("c", ["b", "a"]).remedy.startswith("the queues are: a, b; ")
    assert "backburner queue set" in no_such_queue("c", []).remedy
    assert no_such_queue("default", ["a"]).remedy == "leave the queue out"
