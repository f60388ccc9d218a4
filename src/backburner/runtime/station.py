"""What a process is to a shared record when it carries out work of it.

The engine brings jobs of its routes here, for as long as it says that it lives. What cannot be
carried out here is handed on to a node that may. Output is copied into the record, schedules fire,
and what dead nodes had is seen to. What carries the work out is the affair of `Crew`.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Protocol

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.errors import StoreError
from backburner.model.events import OVER, EventKind
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.node import Node
from backburner.model.states import ErrorKind, State
from backburner.model.task import Task
from backburner.runtime.artifacts import Bringer
from backburner.runtime.children import stop_left_children
from backburner.runtime.contact import Contact
from backburner.runtime.dead_nodes import see_to_the_dead
from backburner.runtime.feed import Feed
from backburner.runtime.heard import NOBODY, Heard
from backburner.runtime.mirror import Copier
from backburner.runtime.output import measure_output
from backburner.runtime.retention import prune_now_and_then
from backburner.runtime.schedules.clockwork import Clockwork
from backburner.runtime.scribe import insist, whole
from backburner.runtime.unstarted import leave_result
from backburner.store.engine import Job
from backburner.store.news import News, of_kinds
from backburner.store.postgres.engine_worker import Brought, EngineWorker
from backburner.store.postgres.node import NodeStore
from backburner.store.postgres.nodes import routes_of

_HOLD = frozenset({EventKind.FAILED_TRY, EventKind.REQUEUED})
"""After these something waits for its time."""
BEATS = 6
"""A node says so many times that it lives before it would be taken for dead."""
_AGAIN_S = 1.0
_BRINGS_S = 10.0
"""Who leaves waits no longer for ends whose files go to a place that does not answer: whoever comes
next with its home brings and writes them."""
_REST_S = 0.05
"""Changes come in crowds: one look for all of those of a moment."""


class Crew(Protocol):
    """What carries out the work that is brought here."""

    async def begin_now(self, task: Task) -> bool:
        """Begin it at once. False where nothing of it runs, for whatever reason: nothing was done

        to it then, because it may be somebody else's.
        """
        ...

    def take_up(self, task: Task) -> None:
        """Begin what is with this node, as soon as there is room."""
        ...

    def unfit(self, task: Task) -> str | None:
        """Why this machine cannot carry it out; None where it can."""
        ...

    @property
    def full(self) -> bool:
        """Whether something that is taken now would have to wait."""
        ...

    def at_work(self) -> list[Task]:
        """What it carries out now, as it was when it began."""
        ...

    async def follow_record(self) -> None:
        """End what is over there, because somebody took this machine for dead; and see to what is

        this machine's there, and nobody here knows of.
        """
        ...


class Station:
    """Of one process, from the moment that it `run`s."""

    def __init__(
        self,
        store: NodeStore,
        home: Home,
        settings: Settings,
        *,
        feed: Feed,
        node: Node,
        crew: Crew,
        report: Callable[[str], None],
    ) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._feed = feed
        self._node = node
        self._crew = crew
        self._report = report
        self._beside: list[asyncio.Task[None]] = []
        self._known = asyncio.Event()
        self._copier = Copier(store, home, crew.at_work, report)
        self._bringer = Bringer(store, home, settings, crew.at_work, report)
        store.has_left = self._has_left
        store.after_end = self._ended
        store.report = report
        self._carried: dict[Job, bool] = {}
        """What was brought here and is not over; whether this process has written its end."""
        self._bells: dict[Job, asyncio.Event] = {}
        """Of those of them that have begun here, or will: to be rung where the record has news."""
        self._missed: Collection[Job] = ()
        """Those that the record did not have as this node's at the last look."""
        self._adopted: set[Job] = set()
        """What is under way here and the engine's worker has not brought, or has let go: it takes a
        place all the same."""
        self._clockwork = Clockwork(store, home, settings, report)
        self._bell = asyncio.Event()
        self._unsubscribe = [
            store.on_change(self._bell.set, of_kinds(_HOLD)),
            store.on_news(self._heard),
        ]
        self._engine = EngineWorker(
            store.address,
            routes=routes_of(node),
            concurrency=node.places,
            heartbeat_s=node.silent_s / BEATS,
            appear=self._appear,
            unheard=self._give_back_unheard,
            carry_out=self._carry_out,
            report=report,
            taken=lambda: len(self._adopted),
        )

    @property
    def node(self) -> Node:
        """What it says of itself."""
        return self._node

    @property
    def behind_s(self) -> float:
        """For how long output may have been written that is not in the record yet."""
        return self._copier.behind_s

    async def known(self) -> None:
        """Wait until the record knows of it: whatever it has then is seen to if it dies."""
        await self._known.wait()

    async def change(self, node: Node) -> None:
        """It says something else of itself from now on. What it has goes on."""
        if node != self._node:
            await self._store.put_node(node, self._engine.number or NOBODY)
            self._node = node  # not before: who is asked again would take it for said
        self._engine.take_from(routes_of(node))

    async def drain(self) -> None:
        """Take on nothing more; `run` returns when the last job has ended."""
        self._engine.stop()
        self._node = replace(self._node, draining=True)
        number = self._engine.number
        if (
            number is None
        ):  # the record has the last process's yet, and what that had is found by it
            return
        with contextlib.suppress(StoreError):  # it is said again with each beat
            await self._store.put_node(self._node, number)

    async def run(self) -> None:
        """Take jobs, until it was drained and the last of them has ended. Cancelled, it stops at

        once. What it does beside goes on until `leave`.
        """
        self._beside = [
            asyncio.create_task(self._clockwork.run()),
            asyncio.create_task(self._copier.run()),
            asyncio.create_task(self._bringer.run()),
            asyncio.create_task(self._see_to_others()),
            asyncio.create_task(self._let_in_what_is_due()),
            asyncio.create_task(self._stop_left_children()),
            asyncio.create_task(
                prune_now_and_then(self._store, self._home, self._settings, self._report)
            ),
        ]
        self._adopted = _under_way(await insist(self._store.kept, self._report))
        # Once more, for what has ended meanwhile: nobody would hear of that.
        self._keep_of_adopted(_under_way(await insist(self._store.kept, self._report)))
        await self._engine.run()

    async def _appear(self, number: int) -> None:
        await insist(lambda: self._store.put_node(self._node, number), self._report)
        self._known.set()

    def _has_left(self, task_id: str, attempt: int) -> bool:
        folder = self._home.attempt(task_id, attempt)
        measured = measure_output(folder, patience_s=0)  # its logs are moved by nobody else
        return bool(measured.total) or os.path.exists(folder.artifacts)

    # What is brought

    async def _carry_out(self, job: Job, brought: Brought | None) -> None:
        """One job of the engine: it lasts for as long as the attempt is here."""
        self._carried[job] = False
        self._adopted.discard(job)
        try:
            await self._carry_to_end(job, brought)
        except StoreError:
            raise  # the record was closed
        except Exception as error:  # noqa: BLE001 - else the engine would forget it without a word
            self._report(f"{job.task}: given back: {type(error).__name__}: {error}")
            await asyncio.sleep(_AGAIN_S)
            if not await insist(partial(self._store.give_back, job), self._report):
                self._adopted.add(job)  # it has begun; what is over goes with the next look
        finally:
            self._carried.pop(job, None)

    async def _carry_to_end(self, job: Job, brought: Brought | None) -> None:
        async with self._feed.of_task(job.task, OVER) as bell:
            try:
                is_here = brought is not None and await self._has_begun(brought)
                if not is_here and not await self._is_taken_up(job):
                    return
            except asyncio.CancelledError:  # whatever has begun meanwhile is not given back
                with contextlib.suppress(StoreError):  # else it is found as what the dead had
                    if not await whole(self._store.give_back(job)):
                        self._adopted.add(job)  # see above
                raise
            self._bells[job] = bell
            try:
                while True:
                    await bell.wait()
                    bell.clear()
                    if self._carried.get(job) or not await self._is_here(job):
                        break
            except asyncio.CancelledError:  # a worker that begins anew lets go of it; it goes on
                self._adopted.add(job)
                raise
            finally:
                del self._bells[job]

    async def _has_begun(self, brought: Brought) -> bool:
        """Begin it, where nothing is in the way: then it need not be taken first."""
        task = brought.task
        if task.state is not State.QUEUED or self._crew.full or self._crew.unfit(task) is not None:
            return False
        if task.hand_over is None or brought.secret is None:
            return await self._crew.begin_now(task)
        self._store.brought_along[task.hand_over] = brought.secret
        try:
            return await self._crew.begin_now(task)
        finally:
            self._store.brought_along.pop(task.hand_over, None)

    async def _is_taken_up(self, job: Job) -> bool:
        """Whether it is with this node now, and begins as soon as it can."""
        task = await self._taken(job)
        if task is not None:
            self._crew.take_up(task)
        return task is not None

    def _heard(self, news: News | None) -> None:
        if news is not None and self._adopted:
            over = news.of(*OVER)
            self._keep_of_adopted({job for job in self._adopted if job.task not in over})

    def _keep_of_adopted(self, under_way: set[Job]) -> None:
        if not self._adopted <= under_way:
            self._adopted &= under_way
            self._engine.look_again()

    def _ended(self, job: Job) -> None:
        if job in self._carried:
            self._carried[job] = True

    async def _is_here(self, job: Job) -> bool:
        """Whether the record has it so. A crash of the database may have undone that it was taken,

        or others took this node for dead; another one may then carry out the same attempt.
        """
        task = await insist(lambda: self._store.get(job.task), self._report)
        if task is None or task.attempt != job.attempt or task.state.terminal:
            return False
        if task.state is State.QUEUED or job not in self._missed:
            return True
        return job in _under_way(await insist(self._store.kept, self._report))

    async def _give_back_unheard(self, number: int, heard: Job | None) -> None:
        """The engine was lost while it brought something, which others would have to find."""
        for job in await insist(lambda: self._store.brought(number), self._report):
            if job != heard and job not in self._carried:
                self._report(f"{job.task}: was brought while the database was lost; given back")
                await insist(partial(self._store.give_back, job), self._report)

    async def _taken(self, job: Job) -> Task | None:
        """Take it, unless another one should."""
        self._store.undecided.add(job.task)
        try:
            task = await insist(lambda: self._store.take(job), self._report)
            return None if task is None or await self._is_handed_on(job, task) else task
        finally:
            self._store.undecided.discard(job.task)

    async def _is_handed_on(self, job: Job, task: Task) -> bool:
        """Whether it is another node's now, or over because there is none."""
        reason = self._crew.unfit(task)
        if reason is None:
            return self._crew.full and await insist(
                lambda: self._store.hand_on(job, refused=False), self._report
            )
        if await insist(lambda: self._store.hand_on(job, refused=True), self._report):
            self._report(f"{job.task}: {reason}; it is handed on")
            return True
        ending = Ending.failed(
            ErrorKind.SPAWN, f"{reason} on {self._node.machine}, nor on any other live worker"
        )
        ended = await insist(
            lambda: self._store.refuse(job.task, job.attempt, ending), self._report
        )
        if ended is not None:
            leave_result(self._home, ended)
            return True
        # Over or another one's; or a crash of the database has undone the take.
        again = await insist(lambda: self._store.take(job), self._report)
        return again is None or await self._is_handed_on(job, again)

    async def _let_in_what_is_due(self) -> None:
        """Further attempts wait in the record for their time, by every node: the first one does."""
        while True:
            self._bell.clear()
            due = await insist(self._store.next_held, self._report)
            # Also what has come due while it was asked, or could not be.
            await insist(self._store.let_in_due, self._report)
            wait = None if due is None else max(0.0, (due - self._store.now()) / clock.SECOND)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._bell.wait()
                    await asyncio.sleep(_REST_S)

    # The others

    async def _see_to_others(self) -> None:
        """Again and again."""
        silent_s = self._node.silent_s
        contact = Contact(silent_s, lambda: self._store.breaks)
        heard = Heard(self._store, self._engine, self._report)
        while True:
            await asyncio.sleep(silent_s / BEATS)
            wrong: set[str] = set()
            # One after the other, and each also where the last one failed: a record that cannot be
            # written says all the same what is over here.
            for look in (
                lambda: heard.see_to_it(self._node),
                self._crew.follow_record,
                partial(self._see_to_the_dead, contact),
            ):
                try:
                    await look()
                except Exception as error:  # noqa: BLE001 - the next look may do
                    wrong.add(f"{type(error).__name__}: {error}")
            for text in wrong:
                self._report(f"a look at the others came to nothing: {text}")

    async def _see_to_the_dead(self, contact: Contact) -> None:
        kept = await self._store.kept()
        under_way = _under_way(kept)
        self._keep_of_adopted(under_way)  # not all that ends is heard of
        missed = self._bells.keys() - under_way
        for job in missed.intersection(self._missed):  # not what was just taken
            self._bells[job].set()
        self._missed = missed
        own = {(task.id, task.attempt) for task in kept}
        await see_to_the_dead(self._store, self._home, contact, own, self._report)

    async def _stop_left_children(self) -> None:
        """Of agents whose machine could not do it: it has died, or lost the database, just then."""
        while True:
            await asyncio.sleep(self._node.silent_s)
            try:
                await stop_left_children(self._store, self._home)
            except Exception as error:  # noqa: BLE001 - the next look may do
                self._report(f"children of agents: {type(error).__name__}: {error}")

    async def leave(self) -> None:
        """After `run`: it is no worker of the engine, and its time to come back is counted."""
        # While others hear of it, and what belongs to these ends can be brought.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_BRINGS_S):
                await self._store.ends_written()
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        for task in self._beside:
            task.cancel()
        if self._beside:
            await asyncio.wait(self._beside)
        await self._clockwork.close()
        self._bringer.close()
        await self._store.put_node(replace(self._node, draining=False), NOBODY)


def _under_way(tasks: Iterable[Task]) -> set[Job]:
    """Without those that have ended, and only left processes behind."""
    return {Job(task.id, task.attempt) for task in tasks if not task.state.terminal}
