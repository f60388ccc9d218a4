"""What the server counts: requests for Prometheus, and callers who ask too often."""

import math
from http import HTTPStatus
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from backburner.serve.problems import Refused
from backburner.serve.rates import Rate
from backburner.serve.settings import Load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backburner.model.task import Task


class Measures:
    """The numbers of one server."""

    def __init__(self, load: Load) -> None:
        self.registry = CollectorRegistry()
        self._asking = Rate(load.per_second, load.burst)
        self._guessing = Rate(load.guesses_per_minute / 60, load.guesses_per_minute)
        self.requests = Counter(
            "backburner_http_requests",
            "Requests that were answered.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "backburner_http_request_seconds",
            "Time until the answer began.",
            ["method", "route"],
            registry=self.registry,
        )
        self.streams = Gauge(
            "backburner_event_readers", "Readers of events.", registry=self.registry
        )
        self.dropped = Counter(
            "backburner_event_readers_dropped",
            "Readers that were too slow.",
            registry=self.registry,
        )
        self.events = Counter(
            "backburner_events",
            "What happened to tasks while this server ran.",
            ["kind"],
            registry=self.registry,
        )
        self._active = Gauge(
            "backburner_active_tasks",
            "Tasks that have not ended.",
            ["kind", "state"],
            registry=self.registry,
        )

    def count(self, token_id: str) -> None:
        """A request by this token; 429 where there were too many."""
        self._refuse(self._asking.take(token_id))

    def guessed(self, client: str) -> None:
        """A token that opens nothing, from this address; 429 where there were too many."""
        self._refuse(self._guessing.take(client))

    @staticmethod
    def _refuse(wait_s: float) -> None:
        if wait_s > 0:
            raise Refused(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too_many_requests",
                "too many requests in too short a time",
                remedy="wait, and ask less often; events are streamed at /v1/events",
                headers={"Retry-After": str(math.ceil(wait_s))},
            )

    def exposition(self, active: "Iterable[Task]") -> bytes:
        """All of it, in the text format of Prometheus."""
        self._active.clear()
        for task in active:
            self._active.labels(task.kind.value, task.state.value).inc()
        return generate_latest(self.registry)
