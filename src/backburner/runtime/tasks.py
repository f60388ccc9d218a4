"""The life of tasks as callers see it: start, find, wait, stop, read."""

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

from backburner.model import ids
from backburner.model.ending import Ending
from backburner.model.errors import (
    Ambiguous,
    ArtifactsUnreachable,
    BackburnerError,
    KeeperUnreachable,
    NeverReady,
    NotFound,
    StoreFull,
    StoreUnusable,
    TimeIsUp,
    UsageError,
)
from backburner.model.events import Event, EventKind
from backburner.model.home import Home
from backburner.model.limits import DEFAULT_GRACE_S, LONGEST_RUNTIME_S, TITLE_MAX_CHARS, Settings
from backburner.model.order import ANY_TIME, Order
from backburner.model.states import ErrorKind, Kind
from backburner.model.task import NewTask, Task, check_start, check_title, preview
from backburner.model.values import value
from backburner.model.watching import ready_when
from backburner.runtime.election import call_keeper, keeper_is_missing
from backburner.runtime.feed import Feed
from backburner.runtime.ordering import failed_before
from backburner.runtime.outages import endured
from backburner.runtime.output import artifacts, describe, open_artifact
from backburner.runtime.runs.lock import is_alive
from backburner.runtime.scribe import whole
from backburner.runtime.sending import Give, give_here
from backburner.runtime.unstarted import ask_to_stop, leave_result
from backburner.store.protocol import Scope, Store
from backburner.work import handover, shell
from backburner.work.assignment import Assignment
from backburner.work.process.wrapper import Launch, problem

Until = Literal["end", "ready"]
"""What can be waited for."""
_UNTIL = get_args(Until)

_ENDS = frozenset({EventKind.FINISHED})
_READY_OR_ENDS = frozenset({EventKind.FINISHED, EventKind.READY})

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

_KEEPER_LOOK_S = 5.0

_CANDIDATES = 10
"""How many tasks an ambiguous prefix lists."""


@value
class StartOptions:
    """What a caller may say about a task beside the work itself."""

    title: str | None = None
    max_runtime_s: float | None = None
    id: str | None = None
    parent: str | None = None
    notify: str | None = None
    """The message bus of the screen that its signals are shown on; None for no screen."""
    order: Order = ANY_TIME
    """The tasks that it comes after are named by their ids or by enough of them."""


class TaskService:
    """Everything that can be done with tasks, within the scope of a caller."""

    def __init__(self, store: Store, home: Home, settings: Settings, feed: Feed) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._feed = feed
        self._had_keeper = False
        self.run_here: Callable[[str, Scope], asyncio.Future[Task | None] | None]
        self.run_here = lambda _task_id, _scope: None
        """The end of a task that this process itself carries out; None for all others."""
        self.fetch_output: Callable[[Task], Awaitable[None]] = _it_is_here
        """Have what a task has written here, where it runs on another machine."""
        self.fetch_artifact: Callable[[Task, str], Awaitable[None]] = _it_is_here
        """The same for a file that it has added."""
        self.give_input: Give = give_here(home)
        """Give something to the input of a task that runs."""

    async def see_to_keeper(self) -> None:
        """Call a keeper where active tasks have none: after a reboot, or when somebody killed it

        and its guardian.
        """
        with contextlib.suppress(BackburnerError):
            if keeper_is_missing(self._home) and (
                await self._store.any_active() or await self._store.next_delivery() is not None
            ):
                call_keeper(self._home)

    async def keep_seeing_to_keeper(self) -> None:
        """For as long as an application is open: who waits for a task must not wait in vain."""
        while True:
            await asyncio.sleep(_KEEPER_LOOK_S)
            await self.see_to_keeper()

    # Starting

    async def start_shell(
        self, scope: Scope, command: shell.ShellCommand, options: StartOptions
    ) -> Task:
        """A shell command, as a task."""
        return await self.start_process(scope, shell.assignment(command, self._settings), options)

    async def start_process(
        self, scope: Scope, assignment: Assignment, options: StartOptions
    ) -> Task:
        """Write the task, and see to it that a keeper carries it out.

        What cannot start is recorded as such and comes back failed; the same id comes back as the
        task that is there.
        """
        new = self._new_task(scope, assignment, options)
        launch = assignment.launch
        limit = self._limit(assignment.kind, options.order)
        if options.id is not None and await self._store.get(options.id) is not None:
            return await self._store.create(new, limit=limit)  # the same one, or a Conflict
        others = [await self.find(reference, scope) for reference in options.order.after]
        after = tuple(dict.fromkeys(other.id for other in others))
        new = replace(new, order=replace(options.order, after=after))
        reason = None if self._home.shared else problem(launch)  # which machine will it be?
        ending = Ending.failed(ErrorKind.SPAWN, reason) if reason is not None else None
        if ending is None and not options.order.after_failure:
            ending = failed_before(others)
        if ending is not None:
            return await whole(self._fail_at_once(new, limit, ending))
        if not self._had_keeper:
            call_keeper(self._home)  # before the commit, so that the two overlap
            self._had_keeper = True
        new = replace(new, hand_over=self.hand_over(new.id, launch))
        return await whole(self._write(new, limit))

    async def _fail_at_once(self, new: NewTask, limit: int, ending: Ending) -> Task:
        failed = await self._store.create(new, limit=limit, ending=ending)
        leave_result(self._home, failed)
        await self.see_to_keeper()  # a channel may have to be told
        return failed

    async def _write(self, new: NewTask, limit: int) -> Task:
        """A task that the keeper is to start. What it leaves for that must not stay in vain."""
        try:
            task = await self._store.create(new, limit=limit)
        except BackburnerError:
            handover.discard(self._home, new.id, new.hand_over)
            raise
        if task.hand_over != new.hand_over:
            # The same id was started a moment before.
            handover.discard(self._home, new.id, new.hand_over)
        with contextlib.suppress(KeeperUnreachable):  # it is on disk, and will be seen to
            call_keeper(self._home)  # after it, in case the keeper was about to leave
        return task

    def _limit(self, kind: Kind, order: Order) -> int:
        if order.queue is not None:
            return self._settings.queued_per_session
        return per_session(kind, self._settings)

    def _new_task(self, scope: Scope, assignment: Assignment, options: StartOptions) -> NewTask:
        if scope.session is None:
            raise UsageError("a task needs a session")
        check_title(options.title)
        check_start(options.id, options.max_runtime_s)
        return NewTask(
            id=options.id or ids.new_id(),
            owner=scope.owner,
            session=scope.session,
            kind=assignment.kind,
            title=preview(
                options.title or assignment.shown, TITLE_MAX_CHARS if options.title else 60
            ),
            spec=handover.for_record(self._home, assignment.spec) | _notify(options),
            max_runtime_s=options.max_runtime_s,
            parent=options.parent,
            order=options.order,
        )

    def hand_over(self, task_id: str, launch: Launch) -> str:
        """Leave a launch for the keeper; StoreFull or StoreUnusable where that is not possible."""
        try:
            return handover.leave(self._home, task_id, launch)
        except OSError as error:
            kind = StoreFull if error.errno in _NO_ROOM else StoreUnusable
            raise kind(
                f"{self._home.root} cannot be written to: {os.strerror(error.errno or 0)}",
                remedy="free some space, or choose another home",
            ) from error

    # Finding

    async def find(self, reference: str, scope: Scope) -> Task:
        """A task by its id, or by enough of it."""
        task = await self._store.get(reference, scope)
        if task is not None:
            return task
        found: list[Task] = []
        if ids.is_valid(reference):
            found = await self._store.find(reference, scope, _CANDIDATES)
        if not found:
            raise NotFound(
                f"no task {preview(reference)!r} in session {scope.session!r}",
                remedy="backburner ls --all-sessions lists every task with its session",
            )
        if len(found) > 1:
            raise Ambiguous(reference, [task.id for task in found])
        return found[0]

    async def get(self, task_id: str, scope: Scope) -> Task:
        """A task by its whole id."""
        task = await self._store.get(task_id, scope)
        if task is None:
            raise NotFound(f"no task {task_id!r} in session {scope.session!r}")
        return task

    # Waiting

    async def wait(
        self, task_id: str, scope: Scope, timeout_s: float | None, *, until: Until = "end"
    ) -> Task:
        """Wait for the end, or until it is ready. TimeIsUp when it takes longer; it goes on.

        NeverReady where it has ended, or ends, before it is ready.
        """
        if until not in _UNTIL:
            raise UsageError(f"{until!r} cannot be waited for", remedy="use end or ready")
        try:
            async with asyncio.timeout(timeout_s):
                return await self._until(until, task_id, scope)
        except TimeoutError:
            what = "done" if until == "end" else "ready"
            raise TimeIsUp(
                f"{task_id} is not {what} after {timeout_s:g} s",
                remedy="it goes on; wait again",
            ) from None

    async def _until(self, until: Until, task_id: str, scope: Scope) -> Task:
        if until == "end" and (here := self.run_here(task_id, scope)) is not None:
            task = await here  # the record comes with its end
            if task is not None:
                return task
        awaited = _ENDS if until == "end" else _READY_OR_ENDS
        async with self._feed.of_task(task_id, awaited) as bell:
            while True:
                bell.clear()
                task = await endured(lambda: self.get(task_id, scope))
                if task.state.terminal if until == "end" else _is_ready(task):
                    leave_result(self._home, task)  # who ended it may not have come to that yet
                    return task
                await bell.wait()

    async def events(
        self, task_id: str, scope: Scope, *, after: int = 0, follow: bool = True
    ) -> AsyncIterator[Event]:
        """The events of a task, up to its end where ``follow``, else those that are there."""
        here = partial(self.get, task_id, scope)
        await endured(here, follow=follow)  # events know no scope
        async with self._feed.of_task(task_id) as bell:
            ended = False
            while True:
                bell.clear()
                look = partial(self._store.events, task_id, after=after, scope=scope)
                events = await endured(look, follow=follow)
                for event in events:
                    after = event.number
                    ended = ended or event.kind is EventKind.FINISHED
                    yield event
                if events:
                    continue
                if ended or not follow:
                    return
                if (await endured(here)).state.terminal:
                    return
                await bell.wait()

    # Stopping

    async def stop(self, task_id: str, scope: Scope, *, grace_s: float = DEFAULT_GRACE_S) -> Task:
        """End the task and everything it started; returns when nothing of it is left.

        One that has ended comes back as it is; what it left behind is ended too.
        """
        check_grace(grace_s)
        task = await ask_to_stop(self._store, self._home, task_id, scope, grace_s)
        if task is None:
            raise NotFound(f"no task {task_id!r} in session {scope.session!r}")
        if task.state.terminal and not task.leftovers:
            await self.see_to_keeper()  # a channel may have to be told
            return task
        worker = task.place.worker if task.place else None
        if worker is None or not is_alive(self._home, worker):
            call_keeper(self._home)  # an application ends what it runs by itself
        async with self._feed.of_task(task_id) as bell:
            while not task.state.terminal or task.leftovers:
                bell.clear()
                task = await endured(lambda: self.get(task_id, scope))
                if not task.state.terminal or task.leftovers:
                    await bell.wait()
        return task

    # Files that it has added

    async def open_artifact(self, task: Task, name: str) -> int:
        """A descriptor of one, brought here first where it lies elsewhere. NotFound."""
        await self.fetch_artifact(task, name)
        return await asyncio.to_thread(open_artifact, self._home, task, name)

    async def fetch_artifacts(self, task: Task, most: int) -> None:
        """Have so many of them here, as far as they can be had."""
        for each in artifacts(self._home, task)[:most]:
            with contextlib.suppress(NotFound, ArtifactsUnreachable):
                await self.fetch_artifact(task, each.name)

    # Describing

    def describe(self, task: Task) -> dict[str, Any]:
        """The task as JSON, with how much output there is now."""
        return describe(self._home, task)


async def _it_is_here(_task: Task, _name: str = "") -> None:
    """What a task of a home has written or added lies in it."""


def check_grace(grace_s: object) -> None:
    """UsageError where it is no time to wait for; a NaN, an infinity and texts come here too."""
    if not isinstance(grace_s, int | float) or not 0 <= grace_s <= LONGEST_RUNTIME_S:
        raise UsageError("the grace must be 0 or more seconds, and less than 100 years")


def per_session(kind: Kind, settings: Settings) -> int:
    """How many tasks of a kind a session may have that have not ended."""
    match kind:
        case Kind.SHELL:
            return settings.shell_per_session
        case Kind.PYTHON:
            return settings.python_per_session
        case Kind.TOOL:
            return settings.tools_per_session
        case Kind.AGENT:
            return settings.agents_per_session


def _notify(options: StartOptions) -> dict[str, str]:
    return {} if options.notify is None else {"notify": options.notify}


def _is_ready(task: Task) -> bool:
    if ready_when(task) is None:
        raise UsageError(
            f"{task.id} has no condition on which it is ready",
            remedy="start it with one, such as --ready-port 8080, or wait for its end",
        )
    if task.ready_at is None and task.state.terminal:
        raise NeverReady(
            f"{task.id} ended before it was ready", remedy=f"see why: backburner show {task.id}"
        )
    return task.ready_at is not None
