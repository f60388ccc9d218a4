"""A cell on paper: one database, the workers on it, and programs that start tasks.

What the model knows of the real thing is little, and all of it is measured (`measured.py`). There
is one writer at a time on all machines; what waits in a process is committed together. A commit
waits for the disk and the wire, costs the database processor time, and makes every worker look. A
task costs processor time beside that: of the database, of its worker, of the processes that it
starts, of its caller. A Python process does one thing at a time. A worker has so many places, and
each waits a moment between two tasks.
"""

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from random import Random
from typing import Any

import simpy

_TOGETHER = 128
"""Changes in one commit, as in store/postgres/writer.py."""

_THEN_S = 20.0
"""For what was begun to end, after the last task was started."""

Flow = Generator[simpy.Event, Any, Any]
Cores = Any
"""simpy.Resource, of whose types the half is unknown."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one task, in seconds of a processor unless said otherwise."""

    commit_s: float
    """That a commit waits for the disk and the wire, holding the lock; no processor."""
    changes_s: float
    """Of the database for what a task changes, by the connections that write: under the lock."""
    worker_s: float
    """Of its worker."""
    caller_s: float
    """Of the program that starts it."""
    reads_s: float = 0.0
    """Of the database for all else."""
    job_s: float = 0.0
    """Of the processes that the worker starts for it."""
    turn_s: float = 0.0
    """That a place waits between two tasks beside all that: notices, the engine's own questions; no
    processor."""
    commit_cpu_s: float = 0.0
    """Of the database for one commit, under the lock, however many changes share it."""
    look_s: float = 0.0
    """Of a worker that has committed something, after each commit."""
    look_reads_s: float = 0.0
    """Of the database for that."""
    bystander_s: float = 0.0
    """Of each other worker after a commit."""
    bystander_reads_s: float = 0.0
    """Of the database for that."""
    changes: int = 3
    """Of the record for a task: it is created, claimed, and it ends."""

    def between(self, other: "Costs") -> "Costs":
        """In the middle of the two."""
        names = [each.name for each in fields(self) if each.name.endswith("_s")]
        return replace(
            self, **{name: (getattr(self, name) + getattr(other, name)) / 2 for name in names}
        )

    def stretched(self, by: float) -> "Costs":
        """Where others use the processors too, each second of one takes longer."""
        names = (
            "changes_s", "reads_s", "worker_s", "job_s", "caller_s", "commit_cpu_s", "look_s",
            "look_reads_s", "bystander_s", "bystander_reads_s",
        )  # fmt: skip
        return replace(self, **{name: getattr(self, name) * by for name in names})


@dataclass(frozen=True, slots=True)
class Shape:
    """The machines of a cell."""

    workers: int
    places: int
    """Of each worker."""
    database_cores: int = 4
    worker_cores: int = 4
    """Of each worker's machine."""
    one_machine: int = 0
    """So many cores for everything, callers included, where all of it is on one machine."""
    bystanders: int = 0
    """Workers without a place, which only hear of commits."""
    writers: int = 1
    """At a time, on all machines: the lock."""


@dataclass(slots=True)
class Tally:
    """What happened to the tasks of a cell."""

    started: int = 0
    ended: int = 0
    commits: int = 0
    looks: int = 0
    """Of workers with places, after commits."""
    heard: int = 0
    """Of bystanders."""
    waits_s: list[float] = field(default_factory=list[float])
    """From the call until the work began."""


class Cell:
    """One database and what is around it."""

    def __init__(self, env: simpy.Environment, costs: Costs, shape: Shape) -> None:
        self._env = env
        self._costs = costs
        one: Cores = simpy.Resource(env, shape.one_machine) if shape.one_machine else None
        self._database: Cores = one or simpy.Resource(env, shape.database_cores)
        self._machines: list[Cores] = [
            one or simpy.Resource(env, shape.worker_cores)
            for _ in range(shape.workers + shape.bystanders)
        ]
        self._workers = shape.workers
        self._callers = one
        self._calls: Cores = simpy.Resource(env, 1)
        self._programs: list[Cores] = [simpy.Resource(env, 1) for _ in self._machines]
        lock = simpy.Resource(env, shape.writers)
        self._rung = [False for _ in self._machines]
        self._calling = _Writer(env, costs, lock, self._database, lambda: self._look(None))
        self._writing: list[_Writer] = [
            _Writer(env, costs, lock, self._database, partial(self._look, number))
            for number in range(shape.workers)
        ]
        # Of each place its worker: whoever has one free takes the next task.
        self._free = simpy.Store(env)
        for number in range(shape.workers):
            self._free.items.extend([number] * shape.places)
        Random(1).shuffle(self._free.items)
        self.tally = Tally()

    def task(self, work_s: float, accepted: Callable[[], object] | None = None) -> Flow:
        """One, from the call to its end. ``accepted`` is called when the caller has its id."""
        costs, began = self._costs, self._env.now
        self.tally.started += 1
        if self._callers is not None:
            yield from self._alone(self._calls, self._callers, costs.caller_s)
        yield self._calling.write()
        if accepted is not None:
            accepted()
        worker: int = yield self._free.get()
        machine, program = self._machines[worker], self._programs[worker]
        yield from self._use(self._database, costs.reads_s / 2)
        yield from self._alone(program, machine, costs.worker_s / 2)
        for _ in range(costs.changes - 2):
            yield self._writing[worker].write()
        self.tally.waits_s.append(self._env.now - began)
        yield from self._use(machine, costs.job_s)
        yield self._env.timeout(work_s)
        yield from self._use(self._database, costs.reads_s / 2)
        yield from self._alone(program, machine, costs.worker_s / 2)
        yield self._writing[worker].write()
        yield self._env.timeout(costs.turn_s)
        yield self._free.put(worker)
        self.tally.ended += 1

    def _look(self, writer: int | None) -> None:
        """Somebody has committed: every worker looks, once for all that came meanwhile."""
        self.tally.commits += 1
        for worker in range(len(self._machines)):
            if not self._rung[worker]:
                self._rung[worker] = True
                self._env.process(self._looks(worker, own=worker == writer))

    def _looks(self, worker: int, *, own: bool) -> Flow:
        costs = self._costs
        self.tally.looks += worker < self._workers
        self.tally.heard += worker >= self._workers
        with self._programs[worker].request() as turn:
            yield turn
            self._rung[worker] = False
            own_s = costs.look_s if own else costs.bystander_s
            yield from self._use(self._machines[worker], own_s)
        yield from self._use(self._database, costs.look_reads_s if own else costs.bystander_reads_s)

    def _alone(self, program: Cores, cores: Cores, time_s: float) -> Flow:
        """In a process that does one thing at a time."""
        with program.request() as turn:
            yield turn
            yield from self._use(cores, time_s)

    def _use(self, cores: Cores, time_s: float) -> Flow:
        with cores.request() as mine:
            yield mine
            yield self._env.timeout(time_s)


class _Writer:
    """Of one process: commits what waits together, when it is its turn."""

    def __init__(
        self,
        env: simpy.Environment,
        costs: Costs,
        lock: Cores,
        cores: Cores,
        committed: Callable[[], None],
    ) -> None:
        self._env = env
        self._committed = committed
        self._commit_s = costs.commit_s
        self._commit_cpu_s = costs.commit_cpu_s
        self._change_s = costs.changes_s / costs.changes
        self._lock = lock
        self._cores = cores
        self._waiting: deque[simpy.Event] = deque()
        self._bell = env.event()
        env.process(self._run())

    def write(self) -> simpy.Event:
        """Happens when it is on disk."""
        done = self._env.event()
        self._waiting.append(done)
        if not self._bell.triggered:
            self._bell.succeed()
        return done

    def _run(self) -> Flow:
        while True:
            yield self._bell
            self._bell = self._env.event()
            while self._waiting:
                with self._lock.request() as turn:
                    yield turn
                    together = [
                        self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))
                    ]
                    with self._cores.request() as core:
                        yield core
                        changes_s = self._change_s * len(together)
                        yield self._env.timeout(self._commit_cpu_s + changes_s)
                    yield self._env.timeout(self._commit_s)
                for each in together:
                    each.succeed()
                self._committed()


def rate_of_batch(
    costs: Costs, shape: Shape, count: int, *, callers: int, work_s: float = 0.0
) -> float:
    """Tasks a second where so many callers hand over so many tasks as fast as they are taken."""
    return batch(costs, shape, count, callers=callers, work_s=work_s)[0]


def batch(
    costs: Costs, shape: Shape, count: int, *, callers: int, work_s: float = 0.0
) -> tuple[float, Tally]:
    """The same, with what happened."""
    env = simpy.Environment()
    cell = Cell(env, costs, shape)
    left = iter(range(count))

    def caller() -> Flow:
        for _ in left:
            accepted = env.event()
            env.process(cell.task(work_s, accepted.succeed))
            yield accepted

    for _ in range(callers):
        env.process(caller())
    env.run()
    assert cell.tally.ended == count
    return count / env.now, cell.tally


@dataclass(frozen=True, slots=True)
class Cells:
    """What came of a load on many of them."""

    offered: float
    carried: float
    hottest: float
    """Load of the busiest cell, as a share of all divided by their number."""
    waits_s: list[float]


def many_cells(
    costs: Costs,
    shape: Shape,
    *,
    cells: int,
    tasks_a_second: float,
    owners: int,
    largest: float,
    work_s: float,
    for_s: float,
    seed: int = 1,
) -> Cells:
    """Owners are spread over cells by a hash, and some have more to do than others: 1/rank of the

    first, but no more than the share ``largest`` of what is meant for one cell.
    """
    random = Random(seed)
    weights = [0.0] * cells
    most = largest * sum(1 / rank for rank in range(1, owners + 1)) / cells
    for rank in range(1, owners + 1):
        weights[random.randrange(cells)] += min(1 / rank, most)
    total = sum(weights)
    tallies: list[Tally] = []
    for weight in weights:
        env = simpy.Environment()
        cell = Cell(env, costs, shape)
        rate = tasks_a_second * weight / total
        arrivals = env.process(_arrivals(env, cell, random, rate, work_s))
        env.run(until=for_s)
        arrivals.interrupt()
        env.run(until=for_s + _THEN_S)
        tallies.append(cell.tally)
    waits = [wait for tally in tallies for wait in tally.waits_s]
    carried = sum(tally.ended for tally in tallies) / for_s
    return Cells(tasks_a_second, carried, max(weights) / total * cells, waits)


def _arrivals(
    env: simpy.Environment, cell: Cell, random: Random, rate: float, work_s: float
) -> Flow:
    while True:
        try:
            yield env.timeout(random.expovariate(rate))
        except simpy.Interrupt:
            return
        env.process(cell.task(random.expovariate(1 / work_s)))
