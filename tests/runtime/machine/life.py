"""One life of a record: what the machine does to it, what it knows of it, and how it ends."""

import asyncio
import contextlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

from backburner import (
    Backburner,
    BackburnerError,
    Kind,
    LimitReached,
    NotFound,
    Session,
    State,
    Task,
)
from backburner.model import clock
from backburner.sync.portal import Portal
from backburner.work.process.condition import Alive, inspect
from tests.faults.victims import arguments_of, kill, unique_seconds
from tests.runtime.machine import work
from tests.runtime.machine.behaviours import ANSWER, MESSAGE, WORK, Behaviour
from tests.runtime.machine.grounds import Ground
from tests.runtime.machine.known import ON_TERMINAL, Known
from tests.runtime.machine.programs import Program
from tests.runtime.machine.registering import opened

T = TypeVar("T")

SESSIONS = ["one", "two"]
HERE = "here"
CARRIER = "carrier"
"""Who carries out processes, and whatever is taken up again."""

PATIENCE_S = 60
RUNS_LIMIT = 5
"""Of active background runs of a session (E3)."""


class Life:
    """A record, its applications, and the model beside it."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.folder = ground.folder
        self.folder.mkdir()
        self.seconds = unique_seconds()
        self.known: dict[str, Known] = {}
        self.applications: dict[str, Program] = {}
        self.acknowledged: Counter[str] = Counter()
        self.ended: set[str] = set()
        """Sessions that were deleted at some time."""
        self.diary: list[str] = []
        """What was done, for whoever has to understand a failure."""
        self._began = time.monotonic()
        self._numbers = 0
        self._stops: list[tuple[Known, asyncio.Task[State | None]]] = []
        self._clock = clock.now
        self._portal = Portal()
        self._closed = False
        self.bb = self._open()

    def _open(self) -> Backburner:
        bb = opened(self.ground.address)
        self.run(bb.__aenter__())
        return bb

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """In the loop that goes on between the steps."""

        async def in_time() -> T:
            async with asyncio.timeout(PATIENCE_S):
                return await work

        return self._portal.call(in_time())

    def note(self, *what: object) -> None:
        """Write it down."""
        self.diary.append(f"{time.monotonic() - self._began:.3f} {' '.join(map(str, what))}")

    def session(self, name: str) -> Session:
        """Of this process's application."""
        return self.bb.session(name)

    # Starting

    def new(
        self,
        behaviour: Behaviour,
        session: str,
        host: str,
        *,
        wake: str = ON_TERMINAL,
        named: bool = True,
    ) -> Known:
        """A task that is about to be started."""
        self._numbers += 1
        token = f"{behaviour.name}-{self._numbers}"
        return Known(token, token, behaviour, session, {host}, wake=wake, named=named)

    def start(self, known: Known) -> None:
        """From here. The same one again is the same task."""
        self.note("start", known.id, known.session)
        try:
            task = self.run(self._started(known))
        except LimitReached:
            self.check_limit(known)
            return
        assert task.id == known.id
        known.sure = True
        self.known[known.id] = known

    async def _started(self, known: Known) -> Task:
        behaviour, session = known.behaviour, self.session(known.session)
        match behaviour.kind:
            case Kind.SHELL:
                names = f"RAN={self.folder}/ran-{known.token} GO={self.folder}/go-{known.token}"
                line = f"{names} NAP={self.seconds}; echo ran >>$RAN; {behaviour.line}"
                return await session.run(line, id=known.id, **behaviour.options)
            case Kind.PYTHON:
                function = f"{WORK}:{behaviour.name}"
                return await session.call(function, self.arguments(known), id=known.id)
            case Kind.TOOL:
                options = self.options(known)
                return await session.spawn(behaviour.name, self.arguments(known), **options)
            case Kind.AGENT:
                prompt = json.dumps(self.arguments(known))
                options = self.options(known)
                return await session.ask(prompt, agent=behaviour.name, **options)

    def arguments(self, known: Known) -> dict[str, Any]:
        """What its tool or function is given."""
        own = {"folder": str(self.folder), "mark": known.token}
        nap = {"seconds": self.seconds} if known.behaviour.naps else {}
        return own | nap | known.behaviour.arguments

    def options(self, known: Known) -> dict[str, Any]:
        """What is said about a run of a tool."""
        return {"id": known.id, "wake": known.wake, **known.behaviour.options}

    def check_limit(self, known: Known) -> None:
        """E3: one more is refused only where there may be so many."""
        others = [
            each
            for each in self.known.values()
            if each.open
            and each.session == known.session
            and each.behaviour.kind is known.behaviour.kind
        ]
        assert len(others) >= RUNS_LIMIT, (known, others)

    # What is done to tasks

    def provide(self, known: Known) -> None:
        """What it needs to end by itself."""
        self.note("provide", known.id)
        known.provided |= known.open
        match known.behaviour.need:
            case "gate":
                work.gate(str(self.folder), known.token).touch()
            case "answer":
                self.send(known, ANSWER)
            case "message":
                known.told |= self.send(known, MESSAGE)
            case None:
                pass

    def send(self, known: Known, text: str) -> bool:
        """An answer or a message; whoever has ended, or asks nothing, refuses it."""

        async def send() -> bool:
            try:
                await (await self.session(known.session).task(known.id)).send(text)
            except BackburnerError:
                return False
            return True

        return self.run(send())

    def stop(self, known: Known, *, force: bool, wait: bool) -> None:
        """Ask for its end; its answer is looked at now, or when this life ends."""
        if known.id not in self.known:
            return  # it was refused
        self.note("stop", known.id, "force" if force else "", "wait" if wait else "")
        known.stop_asked |= known.open
        stopping = self._stopping(known, force=force)
        if wait:
            self._note_stopped(known, self.run(stopping))
            return

        async def begin() -> asyncio.Task[State | None]:
            return asyncio.create_task(stopping)

        self._stops.append((known, self.run(begin())))

    async def _stopping(self, known: Known, *, force: bool) -> State | None:
        try:
            task = await self.session(known.session).task(known.id)
            return (await task.stop(force=force, grace=0.3)).state
        except NotFound:
            assert not known.sure, known
            return None

    def _note_stopped(self, known: Known, state: State | None) -> None:
        if state is not None:
            assert state.terminal, (known, state)
            known.stopped_as.add(state)

    def kill_process(self, known: Known) -> None:
        """The first process of a task, from outside."""
        for folder in self.ground.attempts(known.id, known.attempt):
            match inspect(folder):
                case Alive(int(pid)) if "backburner-job" in arguments_of(pid):
                    self.note("kill process of", known.id, pid)
                    known.killed |= known.open
                    kill(pid)
                case _:
                    pass

    def end_session(self, name: str, *, keep: bool) -> None:
        """The conversation is deleted (D8)."""
        self.note("end session", name, "keep" if keep else "")
        self.ended.add(name)
        if not keep:
            for known in self.known.values():
                if known.open and known.session == name and known.behaviour.in_application:
                    known.stop_asked = True
        self.run(self.session(name).end(keep=keep))

    def acknowledge(self, name: str, *, most: int) -> None:
        """Take what the session is to be told; each must be new (X1)."""

        async def take() -> None:
            taken = 0
            async for signal in self.session(name).signals(follow=False):
                if taken < most and await signal.ack():
                    self.acknowledged[signal.key] += 1
                taken += 1

        self.run(take())
        assert set(self.acknowledged.values()) <= {1}, self.acknowledged

    def look(self) -> dict[str, Task]:
        """All tasks, compared with what was seen of them before."""

        async def tasks() -> list[Task]:
            found = [await self.session(name).tasks(limit=1000) for name in SESSIONS]
            return [task for each in found for task in each]

        found = {task.id: task for task in self.run(tasks())}
        lost = [known for known in self.known.values() if known.sure and known.id not in found]
        assert not lost, f"their starts returned, and they are gone: {lost}"
        unknown = set(found) - set(self.known)
        assert not unknown, f"nobody started them: {unknown}"
        for task in found.values():
            self.known[task.id].seen(task)
        return found

    # Dying

    def host_is_gone(self, host: str) -> None:
        """What it carried out is lost, or taken up by others."""
        for known in self.known.values():
            if not (known.open and known.behaviour.in_application):
                continue
            if host in known.hosts or known.behaviour.repeatable:
                known.lose_host()

    def carrier_is_gone(self) -> None:
        """What it took up of others may be lost with it."""
        if self.ground.carries_tools:
            self.host_is_gone(CARRIER)

    def reopen(self) -> None:
        """Close the application of this process, and open it again."""
        self.note("reopen")
        self.collect_stops(cancel=True)
        self.host_is_gone(HERE)
        self.run(self.bb.__aexit__(None, None, None))
        self.bb = self._open()

    def set_clock(self, by_s: float) -> None:
        """The wall clock of this process."""
        self.note("clock", by_s)
        clock.now = lambda: self._clock() + round(by_s * clock.SECOND)

    def failed_stops(self) -> list[BaseException]:
        """Of those that nobody waits for: what they were to end does not."""
        failed = [
            stopping.exception()
            for _, stopping in self._stops
            if stopping.done() and not stopping.cancelled()
        ]
        return [error for error in failed if error is not None]

    def collect_stops(self, *, cancel: bool) -> None:
        """Whoever waits for the end of a task goes away, or is heard."""
        for known, stopping in self._stops:
            if cancel:
                self._portal.call(_cancelled(stopping))
            else:
                self._note_stopped(known, self.run(_awaited(stopping)))
        self._stops.clear()

    # Leaving

    def close(self) -> None:
        """Everything of ours leaves, and nothing stays behind."""
        for program in self.applications.values():
            program.close()
        self.applications.clear()
        self.run(self.bb.__aexit__(None, None, None))
        self._portal.close()
        self._closed = True
        clock.now = self._clock
        self.ground.leave()

    def abandon(self) -> None:
        """After a failure: end what there is, whatever it is."""
        clock.now = self._clock
        for program in self.applications.values():
            program.kill()
        if not self._closed:
            with contextlib.suppress(Exception):
                self.collect_stops(cancel=True)
                self.run(self.bb.__aexit__(None, None, None))
            self._portal.close()
        self.ground.abandon()

    def story(self) -> str:
        """What was done, and what the carriers said."""
        return "\n".join([*self.diary, self.ground.said()])

    def remove(self) -> None:
        """The folders go."""
        for folder in (*self.ground.homes, self.folder):
            shutil.rmtree(folder, ignore_errors=True)


async def _cancelled(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


async def _awaited(task: "asyncio.Task[T]") -> T:
    return await task
