"""X3, and promise 1 on a full disk: see `on_a_full_disk`, which needs a disk of its own."""

import pytest

from tests.store.sqlite.mounts import run_in_own_mounts


@pytest.mark.slow
def test_x3_a_full_disk_corrupts_nothing_and_all_is_well_when_there_is_room() -> None:
    run_in_own_mounts("tests.store.sqlite.on_a_full_disk")
