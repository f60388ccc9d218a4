# pyright: basic, reportMissingImports=false
"""Celery on Redis: a process for each core, and 64 messages fetched ahead for each.

Results are not kept, as it comes, and a message is acknowledged before it is carried out. So the
task itself tells that it has finished: it adds a byte to a file.
"""

import os

from celery import Celery

from bench.peers.programs.rounds import CALLERS, PLACE, measure, worker

DONE = os.environ["PEER_DONE"]

app = Celery(broker=PLACE.replace("unix://", "redis+socket://"))
app.conf.worker_prefetch_multiplier = CALLERS
app.conf.broker_pool_limit = CALLERS

_done = os.open(DONE, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@app.task
def noop() -> None:
    """Do nothing but say so."""
    os.write(_done, b".")


def main(count: int) -> None:
    """One round."""
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR")
    with worker("celery", "--quiet", "--app", __name__, "worker", *quiet):
        measure(count, lambda _: noop.delay(), lambda total: os.stat(DONE).st_size >= total)
