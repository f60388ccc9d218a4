"""A user who has no inotify watches left, as on many a developer's machine.

`test_flood.py` runs this in a user namespace, where that limit is ours to set.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backburner import Backburner
from tests.faults.test_flood import AFTER, PEAK, peak_until_end, used
from tests.faults.victims import kill_all_of_ours

LIMIT = Path("/proc/sys/user/max_inotify_watches")


@pytest.fixture(autouse=True)
def no_watches(home: Path) -> Iterator[None]:
    """None at all: of no log can the kernel tell us that it grows."""
    LIMIT.write_text("0")
    yield
    kill_all_of_ours(home)


async def test_a_flood_is_bounded_all_the_same(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run("seq 1 30000000; exit 6")
        peak = await peak_until_end(task)
        assert task.exit_code == 6
        assert task.record.output_bytes > 2 * PEAK, "that was no flood"
        assert peak < PEAK
        assert used(task) < AFTER
