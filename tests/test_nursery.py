"""A program that a nursery forks is one that a test can leave behind: it has to be found."""

import os
from pathlib import Path

from tests import leftovers
from tests.nursery import nursery


def test_a_forked_program_that_is_left_is_found_and_can_be_ended(tmp_path: Path) -> None:
    with nursery().start(
        "http.server", "0", environment={**os.environ, "BACKBURNER_HOME": str(tmp_path)}
    ) as left:
        assert leftovers.strangers_of(tmp_path)
        assert leftovers.end_once(tmp_path)
        assert left.wait(30) < 0
    assert leftovers.strangers_of(tmp_path) == []
