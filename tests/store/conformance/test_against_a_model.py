"""Random lives of tasks and signals, through two handles, against a small model of the promise.

Never lost, never told twice, terminal is final (E10, E11, E12, X1): after every step all that the
store tells has to be what the model says.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from backburner.model.ending import Ending
from backburner.model.errors import Conflict, LimitReached
from backburner.model.events import EventKind
from backburner.model.signals import SignalState, end_key
from backburner.model.states import TRANSITIONS, State
from backburner.model.task import EndedFor, Task
from backburner.store.protocol import Facts, Scope, Store
from tests.store.conformance.engines import ENGINES, Engine
from tests.store.conformance.known import (
    Known,
    Telling,
    has,
    is_lingering,
    is_queued,
    is_running,
    is_told,
)
from tests.store.conformance.making import ADA, ADAS_OTHER_SESSION, BOB, ENDINGS, PLACE, new_task

T = TypeVar("T")

IDS = ["bg_1", "bg_2", "bg_3", "bg_4"]
SCOPES = [ADA, ADAS_OTHER_SESSION, BOB]
LIMIT = 2
"""Of active tasks in a session: small, so that it is met."""

handles = st.integers(0, 1)
numbers = st.integers(0, 3)
"""Which of the tasks that a call fits."""
endings = st.sampled_from(list(ENDINGS.values()))
consumers = st.sampled_from(["one", "two"])
askers = st.sampled_from([None, None, None, *SCOPES])
"""Who asks: mostly the one whose task it is."""


LIVES = 70


class AgainstAModel(RuleBasedStateMachine):
    """One run: a fresh record, two handles on it, and the model beside it."""

    engine: Engine

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="bb-model-"))
        self.known: dict[str, Known] = {}
        self.stores: list[Store] = []
        self.looks = 0

    def run(self, work: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await work

        return self.runner.run(awaited())

    @initialize()
    def open(self) -> None:
        self.address = self.run(self.engine.create(self.folder))
        self.stores = [self.run(self.engine.open(self.address)) for _ in range(2)]
        for task_id, scope in zip(IDS[:2], (ADA, BOB), strict=True):
            self.create(0, task_id, scope, "make")

    @rule(handle=handles)
    def reopen(self, handle: int) -> None:
        self.run(self.stores[handle].close())
        self.stores[handle] = self.run(self.engine.open(self.address))

    def teardown(self) -> None:
        try:
            for store in self.stores:
                self.run(store.close())
            if self.stores:
                self.run(self.engine.drop(self.address))
        finally:
            self.runner.close()
            shutil.rmtree(self.folder)

    # Which task

    def some(self, number: int, fits: Callable[[Known], bool]) -> str:
        fitting = [task_id for task_id, known in self.known.items() if fits(known)]
        return fitting[number % len(fitting)]

    # Tasks

    @rule(
        handle=handles,
        task_id=st.sampled_from(IDS),
        scope=st.sampled_from(SCOPES),
        command=st.sampled_from(["make", "make", "test"]),
    )
    def create(self, handle: int, task_id: str, scope: Scope, command: str) -> None:
        spec = {"command": command}
        create = self.stores[handle].create(new_task(task_id, scope=scope, spec=spec), limit=LIMIT)
        there = self.known.get(task_id)
        active = [
            known
            for known in self.known.values()
            if known.scope == scope and not known.state.terminal
        ]
        if there is not None and (there.scope, there.spec) != (scope, spec):
            with pytest.raises(Conflict):
                self.run(create)
        elif there is None and len(active) >= LIMIT:
            with pytest.raises(LimitReached):
                self.run(create)
        else:
            known = self.known.setdefault(task_id, Known(scope, spec))
            self.check(known, self.run(create))

    @precondition(has(is_queued))
    @rule(handle=handles, number=numbers)
    def claim(self, handle: int, number: int) -> None:
        self.try_claim(handle, self.some(number, is_queued))

    @precondition(has(is_running))
    @rule(handle=handles, number=numbers, ending=endings, left=st.sampled_from([0, 0, 2]))
    def finish(self, handle: int, number: int, ending: Ending, left: int) -> None:
        self.try_finish(handle, self.some(number, is_running), ending=ending, left=left)

    @precondition(has(is_running))
    @rule(handle=handles, number=numbers)
    def requeue(self, handle: int, number: int) -> None:
        self.try_requeue(handle, self.some(number, is_running))

    @precondition(has(is_running))
    @rule(handle=handles, number=numbers)
    def begin_ending(self, handle: int, number: int) -> None:
        self.try_begin_ending(handle, self.some(number, is_running))

    @precondition(has(lambda known: is_running(known) or is_lingering(known)))
    @rule(handle=handles, number=numbers)
    def note(self, handle: int, number: int) -> None:
        self.try_note(handle, self.some(number, lambda k: is_running(k) or is_lingering(k)))

    @rule(
        handle=handles,
        task_id=st.sampled_from(IDS),
        change=st.sampled_from(["claim", "finish", "requeue", "begin_ending", "note"]),
        off=st.sampled_from([0, 0, -1, 1]),
    )
    def any_change(self, handle: int, task_id: str, change: str, off: int) -> None:
        """Whether it fits or not, also of another attempt."""
        getattr(self, f"try_{change}")(handle, task_id, off)

    def try_claim(self, handle: int, task_id: str, off: int = 0) -> None:
        known, attempt = self.of(task_id, off)
        task = self.run(self.stores[handle].claim(task_id, attempt, PLACE))
        if known and off == 0 and known.state is State.QUEUED:
            known.state = State.RUNNING
            known.events.append(EventKind.STARTED)
            self.check(known, task)
        else:
            assert task is None

    def try_finish(
        self,
        handle: int,
        task_id: str,
        off: int = 0,
        *,
        ending: Ending = ENDINGS["exit"],
        left: int = 0,
    ) -> None:
        known, attempt = self.of(task_id, off)
        task = self.run(self.stores[handle].finish(task_id, attempt, ending, leftovers=left))
        if known and off == 0 and ending.state in TRANSITIONS[known.state]:
            known.end(ending, left)
            self.check(known, task)
        else:
            assert task is None

    def try_requeue(self, handle: int, task_id: str, off: int = 0) -> None:
        known, attempt = self.of(task_id, off)
        task = self.run(self.stores[handle].requeue(task_id, attempt, "the worker died"))
        if known and off == 0 and known.state is State.RUNNING:
            known.state, known.attempt = State.QUEUED, known.attempt + 1
            known.detail = known.ended_for = None
            known.events.append(EventKind.REQUEUED)
            if known.stop is not None:
                known.end(Ending.canceled())
            self.check(known, task)
        else:
            assert task is None

    def try_begin_ending(self, handle: int, task_id: str, off: int = 0) -> None:
        known, attempt = self.of(task_id, off)
        reason = EndedFor.STOP if known and known.stop is not None else EndedFor.TIMEOUT
        begun = self.run(self.stores[handle].begin_ending(task_id, attempt, reason))
        fits = known is not None and known.state is State.RUNNING and known.ended_for is None
        assert begun is (fits and off == 0)
        if begun and known:
            known.ended_for = reason
            known.events.append(EventKind.ENDING)

    def try_note(self, handle: int, task_id: str, off: int = 0) -> None:
        known, attempt = self.of(task_id, off)
        detail = f"note {len(known.events) if known else 0}"
        noted = self.run(
            self.stores[handle].note(task_id, attempt, EventKind.DETAIL, Facts(detail=detail))
        )
        fits = known is not None and (not known.state.terminal or known.leftovers > 0)
        assert noted is (fits and off == 0)
        if noted and known:
            known.detail = detail
            known.events.append(EventKind.DETAIL)

    def of(self, task_id: str, off: int) -> tuple[Known | None, int]:
        known = self.known.get(task_id)
        return known, (known.attempt if known else 1) + off

    @precondition(lambda self: bool(self.known))
    @rule(handle=handles, number=numbers, asker=askers, grace_s=st.sampled_from([5.0, 2.0, 0.0]))
    def request_stop(self, handle: int, number: int, asker: Scope | None, grace_s: float) -> None:
        task_id = self.some(number, lambda _: True)
        known = self.known[task_id]
        task = self.run(self.stores[handle].request_stop(task_id, asker or known.scope, grace_s))
        if asker not in (None, known.scope):
            assert task is None
            return
        if known.state is State.QUEUED:
            known.end(Ending.canceled())
        elif (known.state is State.RUNNING or known.leftovers) and (
            known.stop is None or grace_s < known.stop
        ):
            known.stop = grace_s
            known.events.append(EventKind.STOP_REQUESTED)
        self.check(known, task)

    @precondition(has(lambda known: known.leftovers > 0))
    @rule(handle=handles, number=numbers, left=st.sampled_from([0, 1]))
    def leftovers_change(self, handle: int, number: int, left: int) -> None:
        task_id = self.some(number, is_lingering)
        known = self.known[task_id]
        noted = self.stores[handle].note(
            task_id, known.attempt, EventKind.LEFTOVERS, Facts(leftovers=left)
        )
        assert self.run(noted) is True
        known.leftovers = left
        known.events.append(EventKind.LEFTOVERS)

    @precondition(lambda self: bool(self.known))
    @rule(handle=handles, chosen=st.sets(st.sampled_from(IDS), min_size=1, max_size=2))
    def forget(self, handle: int, chosen: set[str]) -> None:
        gone = [
            task_id
            for task_id in chosen
            if (known := self.known.get(task_id)) and known.state.terminal and not known.leftovers
        ]
        assert self.run(self.stores[handle].forget(sorted(chosen))) == len(gone)
        for task_id in gone:
            del self.known[task_id]

    # Signals

    @precondition(has(is_told))
    @rule(handle=handles, number=numbers, consumer=consumers, limit=st.integers(1, 3))
    def claim_signals(self, handle: int, number: int, consumer: str, limit: int) -> None:
        scope = self.known[self.some(number, is_told)].scope
        claimed = self.run(
            self.stores[handle].claim_signals(scope, consumer=consumer, limit=limit, lease_s=3600)
        )
        free = [
            task_id
            for task_id, known in self.known.items()
            if known.scope == scope
            and known.telling
            and known.telling.state in (SignalState.PENDING, SignalState.FAILED)
        ]
        assert len(claimed) == min(limit, len(free))
        for signal in claimed:
            telling = self.known[signal.task].telling
            assert signal.task in free
            assert telling is not None
            assert telling.holder is None, "two consumers hold the same signal"
            telling.state, telling.holder = SignalState.CLAIMED, consumer
            telling.tries += 1
            assert (signal.state, signal.tries) == (SignalState.CLAIMED, telling.tries)

    @precondition(has(is_told))
    @rule(handle=handles, number=numbers, asker=askers)
    def acknowledge(self, handle: int, number: int, asker: Scope | None) -> None:
        task_id = self.some(number, is_told)
        scope = asker or self.known[task_id].scope
        telling = self.telling_of(task_id, scope)
        count = self.run(self.stores[handle].acknowledge([end_key(task_id)], scope))
        assert count == (1 if telling and telling.open else 0)
        if telling and count:
            telling.state, telling.holder = SignalState.DELIVERED, None
            telling.told += 1
            assert telling.told == 1, "told twice"

    @precondition(has(is_told))
    @rule(handle=handles, consumer=consumers)
    def release(self, handle: int, consumer: str) -> None:
        held = [
            known.telling
            for known in self.known.values()
            if known.telling and known.telling.holder == consumer
        ]
        assert self.run(self.stores[handle].release_signals(consumer)) == len(held)
        for telling in held:
            telling.state, telling.holder = SignalState.PENDING, None
            telling.tries -= 1

    @precondition(has(is_told))
    @rule(handle=handles, number=numbers)
    def delivery_failed(self, handle: int, number: int) -> None:
        task_id = self.some(number, is_told)
        telling = self.telling_of(task_id)
        store = self.stores[handle]
        failed = store.delivery_failed(end_key(task_id), "no answer", store.now())
        assert self.run(failed) is bool(telling and telling.open)
        if telling and telling.open:
            telling.state, telling.holder = SignalState.FAILED, None

    @precondition(has(is_told))
    @rule(handle=handles, number=numbers)
    def drop(self, handle: int, number: int) -> None:
        task_id = self.some(number, is_told)
        telling = self.telling_of(task_id)
        dropped = self.stores[handle].drop_signal(end_key(task_id), "not wanted")
        assert self.run(dropped) is bool(telling and telling.open)
        if telling and telling.open:
            telling.state, telling.holder = SignalState.DROPPED, None

    def telling_of(self, task_id: str, scope: Scope | None = None) -> Telling | None:
        known = self.known.get(task_id)
        return known.telling if known and scope in (None, known.scope) else None

    # What the store tells is what the model says

    def check(self, known: Known, task: Task | None) -> None:
        assert task is not None
        assert Scope(task.owner, task.session) == known.scope
        assert task.spec == known.spec
        assert (task.state, task.attempt) == (known.state, known.attempt)
        assert (task.stop.grace_s if task.stop else None) == known.stop
        assert (task.leftovers, task.detail) == (known.leftovers, known.detail)
        assert task.ended_for == known.ended_for
        ending = known.ending
        assert (task.finished_at is not None) is (ending is not None)
        assert (task.place is not None) is (EventKind.STARTED in known.events[self.last(known) :])
        if ending is not None:
            assert (task.error, task.exit_code, task.result) == (
                ending.error, ending.exit_code, ending.result,
            )  # fmt: skip
        assert task.signal_state == (known.telling.state if known.telling else None)

    def last(self, known: Known) -> int:
        """Where the events of the last attempt begin."""
        requeued = [n for n, kind in enumerate(known.events) if kind is EventKind.REQUEUED]
        return requeued[-1] if requeued else 0

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        if self.stores:
            self.looks += 1
            self.run(self.compare(self.stores[self.looks % 2]))

    async def compare(self, store: Store) -> None:
        found: dict[str, Task] = {}
        for scope in SCOPES:
            for task in await store.newest(scope, limit=100):
                assert self.known[task.id].scope == scope
                found[task.id] = task
        assert set(found) == set(self.known)
        for task_id, known in self.known.items():
            self.check(known, found[task_id])
            events = await store.events(task_id)
            assert [event.number for event in events] == list(range(1, len(events) + 1))
            assert [event.kind for event in events] == known.events
        for scope in SCOPES:
            told = {signal.task: signal.state for signal in await store.signals(scope)}
            assert told == {
                task_id: known.telling.state
                for task_id, known in self.known.items()
                if known.telling and known.scope == scope
            }
        active = {task.id for task in await store.active()}
        assert active == {
            task_id
            for task_id, known in self.known.items()
            if not known.state.terminal or known.leftovers
        }


@pytest.mark.slow
@pytest.mark.timeout(400)  # thousands of steps, each one or more commits
@pytest.mark.parametrize("name", ENGINES)
def test_e10_e11_e12_x1_no_sequence_of_calls_loses_or_doubles_anything(name: str) -> None:
    live(name, round(LIVES * ENGINES[name].share))


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_e10_e11_e12_x1_no_sequence_of_calls_loses_or_doubles_anything_in_as_many_lives() -> None:
    """As many as in a file. Over a pooler it is only read in another way."""
    live("postgres", LIVES)


def live(name: str, lives: int) -> None:
    machine = type("Machine", (AgainstAModel,), {"engine": ENGINES[name]})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=lives,
            stateful_step_count=50,
            deadline=None,
            derandomize=False,  # as it is in CI, where they would be the same lives each time
        ),
    )
