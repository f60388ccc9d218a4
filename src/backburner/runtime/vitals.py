"""How a worker of a shared record is: whether it takes tasks on, and its numbers for Prometheus.

The record is asked at most once in a while, and by one question at a time: who asks often, or while
the database is away, costs no more than that.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from backburner.model.errors import BackburnerError
from backburner.model.task import Task
from backburner.model.values import value
from backburner.store.postgres.node import Heard, NodeStore

_ANSWERS_S = 2.0
"""A database that takes longer is not there, for a probe."""
_FRESH_S = 1.0


@value
class Work:
    """What a worker has said that it takes on, and how it stands."""

    places: int
    silent_s: float
    behind_s: Callable[[], float]
    """For how long output may have been written that is not in the record yet."""
    draining: Callable[[], bool]
    unfit: Callable[[], str | None]
    """Why its machine can carry out nothing now."""


@value
class _Look:
    at: float
    heard: Heard
    tasks: list[Task]


class Vitals(Collector):
    """Of one worker."""

    def __init__(self, store: NodeStore, work: Work) -> None:
        self._store = store
        self._work = work
        self._asking: asyncio.Task[_Look | None] | None = None
        self._last: _Look | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    async def why_not_ready(self) -> str | None:
        """None where it takes tasks on."""
        if self._work.draining():
            return "it takes on nothing more"
        if (reason := self._work.unfit()) is not None:
            return reason
        look = await self._look()
        if look is None:
            return "the database does not answer"
        if look.heard.silent_s is None:
            return "it does not take tasks on yet"
        if look.heard.silent_s > self._work.silent_s:
            return f"nothing was heard of it for {look.heard.silent_s:.0f} s"
        return None

    async def exposition(self) -> bytes:
        """All of it, in the text format of Prometheus; what is not known now is left out."""
        self._last = await self._look()
        return generate_latest(self._registry)

    async def _look(self) -> _Look | None:
        if self._last is not None and time.monotonic() - self._last.at < _FRESH_S:
            return self._last
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        try:
            async with asyncio.timeout(_ANSWERS_S):
                self._last = await asyncio.shield(self._asking)
        except TimeoutError:
            return None
        return self._last

    async def _ask(self) -> _Look | None:
        """None where the record does not say. Who asked may be gone when it does."""
        try:
            heard = await self._store.heard()
            return _Look(time.monotonic(), heard, await self._store.kept())
        except BackburnerError:
            return None

    async def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client's Collector."""
        look = self._last
        yield GaugeMetricFamily(
            "backburner_worker_places", "Tasks that it takes on at once.", self._work.places
        )
        yield GaugeMetricFamily(
            "backburner_worker_draining", "Whether it takes on nothing more.", self._work.draining()
        )
        yield CounterMetricFamily(
            "backburner_worker_taken", "Attempts that it has taken on.", self._store.has_begun
        )
        ended = CounterMetricFamily(
            "backburner_worker_ended", "Tasks that it has ended.", labels=["kind", "state"]
        )
        for (kind, state), count in self._store.has_ended.items():
            ended.add_metric([kind.value, state.value], count)
        yield ended
        yield GaugeMetricFamily(
            "backburner_worker_output_behind_seconds",
            "For how long output may have been written that is not in the record yet.",
            self._work.behind_s(),
        )
        yield GaugeMetricFamily(
            "backburner_worker_database_up", "Whether the database answers.", look is not None
        )
        if look is not None:
            yield from _of_look(look)


def _of_look(look: _Look) -> Iterator[Metric]:
    running = GaugeMetricFamily(
        "backburner_worker_tasks", "Tasks that it has.", labels=["kind", "state"]
    )
    counted = Counter((task.kind.value, task.state.value) for task in look.tasks)
    for labels, count in counted.items():
        running.add_metric(labels, count)
    yield running
    if look.heard.silent_s is not None:
        yield GaugeMetricFamily(
            "backburner_worker_heartbeat_age_seconds",
            "Since it has last said that it lives.",
            look.heard.silent_s,
        )
    depth = GaugeMetricFamily(
        "backburner_queue_tasks", "Tasks of a queue, on all machines.", labels=["queue", "state"]
    )
    for queue, waiting, runs in look.heard.queues:
        depth.add_metric([queue, "queued"], waiting)
        depth.add_metric([queue, "running"], runs)
    yield depth
