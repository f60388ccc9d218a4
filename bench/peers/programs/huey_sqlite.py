# pyright: basic, reportMissingImports=false
"""Huey on SQLite, its consumer as it comes: one thread, and more of them were slower.

Finished means that the result is in its store. PEER_FSYNC=off is Huey's own `fsync=False`.
"""

import os
import signal

from huey import SqliteHuey

from bench.peers.programs.rounds import PLACE, measure, worker

huey = SqliteHuey(filename=PLACE, fsync=False if os.environ.get("PEER_FSYNC") == "off" else None)


@huey.task()
def noop() -> bool:
    """Do nothing."""
    return True


def main(count: int) -> None:
    """One round."""
    with worker("huey_consumer", f"{__name__}.huey", "--quiet", ends_with=signal.SIGINT):
        measure(count, lambda _: noop(), lambda total: huey.storage.result_store_size() >= total)
