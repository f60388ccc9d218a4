"""A test that runs others apart says what became of them."""

import pytest

from tests.faults.apart import run_apart

pytestmark = pytest.mark.slow


def test_what_was_noted_there_is_answered() -> None:
    assert run_apart("faults/on_trial.py::test_that_passes") == {"done by": "hand"}


def test_what_is_skipped_there_is_skipped_here_and_says_why() -> None:
    with pytest.raises(pytest.skip.Exception, match="LOUD: this cannot be tried here"):
        run_apart("faults/on_trial.py::test_that_is_skipped")


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("faults/on_trial.py", "that is wrong"),  # though another one is skipped
        ("faults/homes.py", "no tests ran"),
        ("faults/on_trial.py::test_that_is_not_there", "not found"),
    ],
)
def test_what_fails_or_is_no_test_fails_here(test: str, said: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=said):
        run_apart(test)
