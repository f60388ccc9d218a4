# pyright: basic, reportMissingImports=false
"""Dramatiq on Redis, its worker as it comes: a process for each core, with eight threads.

Finished means acknowledged. Results are not kept: Dramatiq keeps them only when it is told to.
"""

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers.programs.rounds import PLACE, measure, worker

broker = RedisBroker(url=PLACE)
dramatiq.set_broker(broker)


@dramatiq.actor
def noop() -> None:
    """Do nothing."""


def main(count: int) -> None:
    """One round."""
    with worker("dramatiq", "--skip-logging", __name__):
        measure(count, lambda _: noop.send(), lambda _: broker.do_qsize("default") == 0)
