"""X9: the service under a real systemd: installed, stopped and started under a running job."""

import os

import pytest

from tests.keeper.on_a_real_systemd import MANAGER
from tests.store.sqlite.mounts import run_in_own_mounts


@pytest.mark.faults
def test_x9_a_real_systemd_keeps_the_keeper_and_leaves_jobs_alone() -> None:
    if not os.path.exists(MANAGER):
        pytest.fail("systemd is missing: install the package systemd")
    run_in_own_mounts("tests.keeper.on_a_real_systemd")
