"""Random lives of a record: work of every kind is started, stopped, answered and killed under.

The rules are what users, models and accidents do. What must be true at the end of each life,
whatever was done, is in `promise`.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from backburner import Kind
from tests.runtime.machine.behaviours import AGENTS, PARKING, PYTHON, SHELL, TOOLS, Behaviour
from tests.runtime.machine.ending import finish
from tests.runtime.machine.grounds import NewGround
from tests.runtime.machine.known import ON_TERMINAL, Known
from tests.runtime.machine.life import CARRIER, HERE, SESSIONS, Life
from tests.runtime.machine.programs import Program
from tests.waiting import pause, wait_until_async

APPLICATIONS = 2
"""At once, beside the one of this process."""

DAY_S = 86400.0

sessions = st.sampled_from(SESSIONS)
numbers = st.integers(0, 7)
"""Which of those that a rule fits."""
often = st.sampled_from([True, True, True, False])
seldom = st.sampled_from([False, False, False, True])
wakes = st.sampled_from([ON_TERMINAL, ON_TERMINAL, "on_activity", "silent"])
jumps = st.sampled_from([0.0, -3600.0, 3600.0, -5 * DAY_S, 5 * DAY_S])


def has(fits: Callable[[Known], bool]) -> Callable[["Machine"], bool]:
    """Whether a rule fits. Decided by the steps alone: hypothesis wants the same choices again, and

    whether a task has ended by now is a matter of time.
    """
    return lambda self: any(fits(known) for known in self.planned)


def is_any(known: Known) -> bool:
    return True


def needs(known: Known) -> bool:
    return known.behaviour.need is not None


def needs_answer(known: Known) -> bool:
    return known.behaviour.need == "answer"


def is_process(known: Known) -> bool:
    return not known.behaviour.in_application


def is_named(known: Known) -> bool:
    return known.named


def has_applications(self: "Machine") -> bool:
    return bool(self.life.applications)


def has_guardian(self: "Machine") -> bool:
    return self.life.ground.has_guardian


def has_database(self: "Machine") -> bool:
    return self.life.ground.has_database


class Machine(RuleBasedStateMachine):
    """The rules. `new_ground` is set by the test."""

    new_ground: NewGround

    def __init__(self) -> None:
        super().__init__()
        self.programs = 0
        self.planned: list[Known] = []
        """Every task that was to be started; a limit may have refused it."""

    @initialize()
    def begin(self) -> None:
        self.life = Life(self.new_ground())

    def teardown(self) -> None:
        """The promise, unless something else has failed before."""
        if not hasattr(self, "life"):
            return
        failure = sys.exc_info()[1]
        try:
            if failure is None:
                finish(self.life)
                self.life.close()
        except BaseException as error:
            failure = error
            raise
        finally:
            if failure is not None:
                failure.add_note(self.life.story())
                self.life.abandon()
            self.life.remove()

    def some(self, number: int, fits: Callable[[Known], bool]) -> Known:
        fitting = [known for known in self.planned if fits(known)]
        return fitting[number % len(fitting)]

    def plan(
        self,
        behaviour: Behaviour,
        session: str,
        host: str,
        *,
        wake: str = ON_TERMINAL,
        named: bool = True,
    ) -> Known:
        known = self.life.new(behaviour, session, host, wake=wake, named=named)
        self.planned.append(known)
        return known

    def application(self, number: int) -> Program:
        names = sorted(self.life.applications)
        return self.life.applications[names[number % len(names)]]

    # Starts

    @rule(behaviour=st.sampled_from(SHELL), session=sessions)
    def run(self, behaviour: Behaviour, session: str) -> None:
        self.life.start(self.plan(behaviour, session, CARRIER))

    @rule(behaviour=st.sampled_from(PYTHON), session=sessions)
    def call(self, behaviour: Behaviour, session: str) -> None:
        self.life.start(self.plan(behaviour, session, CARRIER))

    @rule(behaviour=st.sampled_from(TOOLS + AGENTS), session=sessions, wake=wakes)
    def spawn(self, behaviour: Behaviour, session: str, wake: str) -> None:
        self.life.start(self.plan(behaviour, session, HERE, wake=wake))

    @precondition(has_applications)
    @rule(
        behaviour=st.sampled_from(TOOLS + AGENTS),
        session=sessions,
        wake=wakes,
        number=numbers,
        heard=often,
    )
    def spawn_elsewhere(
        self, behaviour: Behaviour, session: str, wake: str, number: int, heard: bool
    ) -> None:
        """Or an application that is killed before anyone hears whether it has started anything."""
        program = self.application(number)
        known = self.plan(behaviour, session, program.name, wake=wake)
        self.life.note("spawn", known.id, session, "by", program.name, "heard" if heard else "")
        do = "ask" if behaviour.kind is Kind.AGENT else "spawn"
        command: dict[str, Any] = {
            "session": session,
            "tool": behaviour.name,
            "arguments": self.life.arguments(known),
            "options": self.life.options(known),
        }
        if heard:
            if program.obey(do, **command) is None:
                self.life.check_limit(known)
            else:
                self.life.known[known.id] = known
            return
        known.sure = False
        self.life.known[known.id] = known
        program.tell(do, **command)
        self.kill_program(program)

    @rule(behaviour=st.sampled_from(PARKING), session=sessions)
    def park(self, behaviour: Behaviour, session: str) -> None:
        known = self.plan(behaviour, session, HERE, named=False)
        invoke = self.life.session(session).invoke(
            behaviour.name, self.life.arguments(known), budget=0.01
        )
        outcome = self.life.run(invoke)
        assert outcome.parked, outcome
        self.parked(known, outcome.task.id)

    @precondition(has_applications)
    @rule(behaviour=st.sampled_from(PARKING), session=sessions, number=numbers)
    def park_elsewhere(self, behaviour: Behaviour, session: str, number: int) -> None:
        program = self.application(number)
        known = self.plan(behaviour, session, program.name, named=False)
        task_id = program.obey(
            "park", session=session, tool=behaviour.name, arguments=self.life.arguments(known)
        )
        assert task_id is not None
        self.parked(known, task_id)

    def parked(self, known: Known, task_id: str) -> None:
        self.life.note("parked", known.token, task_id, known.session, "by", known.hosts)
        known.id = task_id
        self.life.known[task_id] = known

    @rule(session=sessions)
    def invoke(self, session: str) -> None:
        """Within its budget it leaves no task: `look` would find it."""
        known = self.life.new(TOOLS[0], session, HERE)
        arguments = self.life.arguments(known)
        outcome = self.life.run(self.life.session(session).invoke("gives", arguments))
        assert (outcome.parked, outcome.result) == (False, known.token)

    @rule(session=sessions)
    def caller_goes_away(self, session: str) -> None:
        """D6: and takes the call along."""
        known = self.life.new(TOOLS[0], session, HERE)
        arguments = self.life.arguments(known)
        mark = self.life.folder / f"ran-{known.token}"

        async def call_and_go() -> None:
            invoke = self.life.session(session).invoke("passes_once", arguments, budget=600)
            caller = asyncio.create_task(invoke)
            await wait_until_async(mark.exists)
            caller.cancel()
            await asyncio.wait([caller])
            assert caller.cancelled()

        self.life.run(call_and_go())

    @precondition(has(is_named))
    @rule(number=numbers)
    def start_again(self, number: int) -> None:
        """E12: the same id is the same task."""
        known = self.some(number, is_named)
        if not known.sure or known.id not in self.life.known:
            known.hosts.add(HERE)
        self.life.start(known)

    # What is done to them

    @precondition(has(is_any))
    @rule(number=numbers, force=st.booleans(), wait=st.booleans())
    def stop(self, number: int, force: bool, wait: bool) -> None:
        self.life.stop(self.some(number, is_any), force=force, wait=wait)

    @precondition(has(needs))
    @rule(number=numbers)
    def provide(self, number: int) -> None:
        self.life.provide(self.some(number, needs))

    @precondition(has(needs_answer))
    @rule(number=numbers)
    def answer_wrongly(self, number: int) -> None:
        """What does not fit is refused; where nothing is asked yet, it is a message."""
        self.life.send(self.some(number, needs_answer), "a few")

    @rule(session=sessions, most=st.sampled_from([0, 1, 100]))
    def acknowledge(self, session: str, most: int) -> None:
        self.life.acknowledge(session, most=most)

    @precondition(has(is_any))
    @rule()
    def look(self) -> None:
        self.life.look()

    @precondition(has(is_any))
    @rule(number=numbers)
    def read(self, number: int) -> None:
        known = self.some(number, is_any)

        async def read() -> None:
            for task in await self.life.session(known.session).tasks():
                if task.id == known.id:
                    await task.output()

        self.life.run(read())

    @precondition(has(is_any))
    @rule(session=sessions, keep=st.booleans(), really=seldom)
    def end_session(self, session: str, keep: bool, really: bool) -> None:
        if really:
            self.life.end_session(session, keep=keep)

    @rule(seconds=st.sampled_from([0.02, 0.1, 0.4]))
    def let_time_pass(self, seconds: float) -> None:
        pause(seconds, because="the moment of what follows is random")

    # Accidents

    @precondition(has(is_process))
    @rule(number=numbers)
    def kill_process(self, number: int) -> None:
        self.life.kill_process(self.some(number, is_process))

    @rule(number=numbers)
    def kill_carrier(self, number: int) -> None:
        self.life.note("kill carrier", number)
        self.life.carrier_is_gone()
        self.life.ground.kill_carrier(number)

    @precondition(has_guardian)
    @rule()
    def kill_guardian(self) -> None:
        self.life.note("kill guardian")
        self.life.ground.kill_guardian()

    @rule()
    def kill_carriers(self) -> None:
        self.life.note("kill carriers")
        self.life.carrier_is_gone()
        self.life.ground.kill_carriers()

    @precondition(has_database)
    @rule(with_carriers=st.booleans())
    def kill_database(self, with_carriers: bool) -> None:
        self.life.note("kill database", "with carriers" if with_carriers else "")
        if with_carriers:
            self.life.carrier_is_gone()
        self.life.ground.kill_database(with_carriers=with_carriers)

    @rule(number=numbers, seconds=st.sampled_from([0.05, 0.3]))
    def hold_up_carrier(self, number: int, seconds: float) -> None:
        if carrier := self.life.ground.carrier(number):
            self.hold_up(carrier, seconds)

    @precondition(has_applications)
    @rule(number=numbers, seconds=st.sampled_from([0.05, 1.2]))
    def hold_up_application(self, number: int, seconds: float) -> None:
        """Long enough for a keeper to take it for dead, if it were to."""
        self.hold_up(self.application(number).pid, seconds)

    def hold_up(self, pid: int, seconds: float) -> None:
        self.life.note("hold up", pid, seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            pause(seconds, because="a busy machine holds processes up")
            os.kill(pid, signal.SIGCONT)

    @precondition(lambda self: len(self.life.applications) < APPLICATIONS)
    @rule()
    def start_application(self) -> None:
        self.programs += 1
        program = Program(self.life.ground, f"application{self.programs}")
        self.life.note(program.name)
        self.life.applications[program.name] = program

    @precondition(has_applications)
    @rule(number=numbers)
    def kill_application(self, number: int) -> None:
        self.kill_program(self.application(number))

    def kill_program(self, program: Program) -> None:
        self.life.note("kill", program.name)
        del self.life.applications[program.name]
        self.life.host_is_gone(program.name)
        program.kill()

    @precondition(has_applications)
    @rule(number=numbers)
    def close_application(self, number: int) -> None:
        program = self.application(number)
        self.life.note("close", program.name)
        del self.life.applications[program.name]
        self.life.host_is_gone(program.name)
        program.close()

    @rule()
    def reopen(self) -> None:
        self.life.reopen()

    @rule(by_s=jumps)
    def set_clock(self, by_s: float) -> None:
        self.life.set_clock(by_s)

    @precondition(has_applications)
    @rule(by_s=jumps, number=numbers)
    def set_clock_elsewhere(self, by_s: float, number: int) -> None:
        self.application(number).obey("clock", by=by_s)
