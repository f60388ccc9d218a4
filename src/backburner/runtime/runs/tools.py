"""Calling tools: in the background (`spawn`), or for as long as their budget lasts (`invoke`).

A call within its budget costs no disk write. One that outlives it is parked: the same call goes
on, and is on record from then on.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from backburner.model import ids
from backburner.model.errors import LimitReached, NotAllowed, StoreClosed, UsageError
from backburner.model.limits import DEFAULT_GRACE_S, LONGEST_RUNTIME_S, TITLE_MAX_CHARS
from backburner.model.outcome import Image, Outcome
from backburner.model.redaction import redact_arguments
from backburner.model.states import Kind, State
from backburner.model.task import NewTask, Progress, Task, check_start, preview
from backburner.model.values import value
from backburner.model.wake import IF_PARKED
from backburner.runtime.children import ends_its_children
from backburner.runtime.outages import endured
from backburner.runtime.runs.folders import kept_folder
from backburner.runtime.runs.options import RunOptions
from backburner.runtime.runs.run import Run, Work
from backburner.runtime.runs.worker import RunWorker
from backburner.runtime.schedules.work import waits_for
from backburner.runtime.scribe import insist
from backburner.store.protocol import Scope
from backburner.work.python import check_arguments
from backburner.work.tools.execution import Failure, carry_out
from backburner.work.tools.registry import Registry, Tool
from backburner.work.tools.tool import refuse_in_background, refuse_without_function

if TYPE_CHECKING:
    from backburner.runtime.runs.elsewhere import Elsewhere

_LAST_WORDS_S = 5.0
"""What a call gets for ending when its caller is gone."""

_LOOK_AGAIN_S = 1.0


@value
class Caller:
    """Who calls: the scope, and what the tool gets to see of it."""

    scope: Scope
    session: Any = None
    folder: str | None = None
    parent: str | None = None
    depth: int = 0


@value
class Invocation:
    """What came of a call: its outcome, or the task that it goes on as."""

    tool: str
    parked: bool = False
    task: Any = None
    """The task of a parked call."""
    success: bool = True
    result: Any = None
    summary: str | None = None
    raw_output: Any = None
    images: tuple[Image, ...] = ()
    error: str | None = None
    """Why it failed, in words for a model."""
    connection: str | None = None
    """The provider that has to be connected first: neither success nor error."""
    timeout_seconds: float | None = None
    message: str | None = None
    usage: Mapping[str, int] | None = None

    def document(self) -> dict[str, Any]:
        """A parked call as the caller is told of it (D2)."""
        return {
            "type": "background",
            "tool": self.tool,
            "timeout_seconds": self.timeout_seconds,
            "background_id": self.task.id,
            "message": self.message,
        }


class ToolService:
    """Calls the tools of one registry."""

    def __init__(
        self, worker: RunWorker, registry: Registry, elsewhere: "Elsewhere | None" = None
    ) -> None:
        """In a shared record there may be tools ``elsewhere``."""
        self._worker = worker
        self._registry = registry
        self._elsewhere = elsewhere
        self._parked: dict[Scope, int] = {}
        self._stale = True
        worker.store.on_change(self._changed)

    def _changed(self) -> None:
        self._stale = True

    # In the background

    async def spawn(
        self, caller: Caller, name: str, arguments: Mapping[str, Any], options: RunOptions
    ) -> Task:
        """Start a tool in the background. Returns when it is on disk (E2).

        One that this application does not have is left to a machine that has it.
        """
        tool = await self._find(name)
        refuse_in_background(tool)
        values = _checked(tool, arguments)
        new = self._new(caller, tool, arguments, options)
        if tool.elsewhere:
            return await self._leave(new)
        limit = self._worker.settings.tools_per_session
        return await self._worker.start(
            new,
            _calling(tool, values),
            limit=limit,
            session=caller.session,
            folder=caller.folder,
            fresh=options.id is None,
        )

    async def _find(self, name: str) -> Tool:
        """The tool of this name, here or elsewhere. UsageError that names those that are known."""
        known = self._registry.find(name)
        if self._elsewhere is None or (known is not None and known.function is not None):
            return self._registry.get(name)
        tool = await self._elsewhere.look_for(name)
        return tool or self._elsewhere.beside(self._registry).get(name)

    async def _leave(self, new: NewTask) -> Task:
        """Write a task that a machine takes up which has its tool."""
        if new.spec["redacted"]:
            raise UsageError(
                f"the arguments of {new.spec['tool']!r} hold secrets, which are kept nowhere until"
                " another machine takes them",
                remedy="let the tool find them itself, in a file or in its environment",
            )
        limit = self._worker.settings.tools_per_session
        return await self._worker.store.create(
            new, limit=limit, detail=waits_for(new.kind, new.spec, shared=True)
        )

    def _new(
        self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], options: RunOptions
    ) -> NewTask:
        if caller.scope.session is None:
            raise UsageError("a task needs a session")
        check_start(options.id, options.max_runtime_s)
        kept, redacted = redact_arguments(arguments)
        settings = self._worker.settings
        return NewTask(
            id=options.id or ids.new_id(),
            owner=caller.scope.owner,
            session=caller.scope.session,
            kind=Kind.TOOL,
            title=preview(options.title or tool.display_name, TITLE_MAX_CHARS),
            spec={
                "tool": tool.name,
                "arguments": kept,
                "reference": tool.reference,
                "readonly": tool.readonly,
                "idempotent": tool.idempotent,
                "redacted": redacted,
                "log": [settings.log_head, settings.log_tail],
                "wake": options.wake,
                "folder": kept_folder(caller.folder, self._worker.home),
                "depth": caller.depth,
            },
            max_runtime_s=options.max_runtime_s,
            parent=caller.parent,
            order=options.order,
        )

    # Within a budget

    async def invoke(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any],
        budget: float | Literal["own"] | None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> Invocation:
        """Call a tool and wait for it, up to its budget; past that it is parked, never cancelled.

        ``budget`` is in seconds, None for none, or "own" for what the tool has set. Whoever goes
        away before that takes the call with them (D6).
        """
        tool = await self._find(name)
        refuse_without_function(tool)
        values = _checked(tool, arguments)
        seconds = tool.budget if budget == "own" else _seconds(budget)
        if tool.elsewhere:
            new = self._new(caller, tool, arguments, RunOptions())
            return await self._call_elsewhere(tool, new, seconds, on_progress)
        if seconds is not None:
            await self._refuse_parking_above_limit(caller.scope)
        run = self._worker.draft(
            lambda: self._new(caller, tool, arguments, RunOptions()),
            session=caller.session,
            folder=caller.folder,
        )
        run.sink.on_progress = on_progress
        work = run.begin(_calling(tool, values))
        try:
            if tool.record:
                await self._worker.recorded(run)
            await asyncio.wait((work,), timeout=seconds)
        except BaseException:  # cancelled; or it has to be on record, and cannot be
            await _end_with_caller(work)
            raise
        task = None if work.done() else await self._park(run, work)
        if task is None:
            if work.cancelled():
                raise StoreClosed("the home was closed before the call came to its end")
            return _finished(tool, work.result())
        return _parked(tool, task, seconds or 0.0)

    async def _park(self, run: Run, work: "asyncio.Task[Outcome | Failure]") -> Task | None:
        """It goes on by itself: from here on its caller's end is not its own.

        None where it ended after all: while as many as may be are parked, its caller goes on
        waiting, since it is never cut off.
        """
        parking: asyncio.Future[Task] | None = None
        try:
            await self._refuse_child_of_ended(run)
            while True:
                parking = asyncio.ensure_future(self._recorded_as_parked(run))
                try:
                    task = await asyncio.shield(parking)
                    self._stale = True  # at once: the next call may come before the news of it
                    return task
                except LimitReached:
                    await asyncio.wait((work,), timeout=_LOOK_AGAIN_S)
                    if work.done():
                        return None
        except asyncio.CancelledError:
            if parking is not None and not parking.done():
                parking.add_done_callback(lambda done: _failed(done) and work.cancel())
            elif parking is None or _failed(parking):
                await _end_with_caller(work)  # it is not parked, so it does not go on (D6)
            raise
        except Exception:
            work.cancel()
            raise

    async def _refuse_child_of_ended(self, run: Run) -> None:
        """What an agent has started ends with it; a call that it left behind is no exception."""
        parent = run.new.parent
        agent = None if parent is None else await self._worker.store.get(parent)
        if agent is not None and agent.state.terminal and ends_its_children(agent):
            raise NotAllowed("the agent that made the call has ended")

    async def _recorded_as_parked(self, run: Run) -> Task:
        limit = self._worker.settings.parked_per_session
        task = await insist(
            lambda: self._worker.recorded(run, parked=True, limit=limit), self._worker.report
        )
        if task.parked_at is None:  # it was on record before
            task = await self._worker.store.park(task.id, task.attempt) or task
        return task

    async def _refuse_parking_above_limit(self, scope: Scope) -> None:
        if self._stale:
            self._parked.clear()
            self._stale = False
        count = self._parked.get(scope)
        if count is None:
            count = self._parked[scope] = await self._worker.store.parked(scope)
        most = self._worker.settings.parked_per_session
        if count >= most:
            raise LimitReached(
                f"session {scope.session!r} has {count} parked calls, and {most} is the limit",
                remedy="wait for one of them or stop one; the call was not made",
            )

    # Where another machine carries it out

    async def _call_elsewhere(
        self,
        tool: Tool,
        new: NewTask,
        seconds: float | None,
        on_progress: Callable[[Progress], object] | None,
    ) -> Invocation:
        """Wait for it as for a call here: it is on record from the start, and told of if parked."""
        store = self._worker.store
        scope = Scope(new.owner, new.session)
        new = replace(new, spec={**new.spec, IF_PARKED: True})
        leaving = asyncio.ensure_future(self._leave(new))
        try:
            task = await asyncio.shield(leaving)
            try:
                async with asyncio.timeout(seconds):
                    task = await self._ended(task, on_progress)
            except TimeoutError:
                while not task.state.terminal and task.parked_at is None:
                    parked = await store.park(task.id, task.attempt)
                    task = parked or await store.get(task.id) or task  # taken up again meanwhile
        except asyncio.CancelledError:  # who goes away takes the call along (D6)
            await asyncio.wait([leaving])
            if not _failed(leaving):
                await asyncio.shield(store.request_stop(new.id, scope, DEFAULT_GRACE_S))
            raise
        if not task.state.terminal:
            return _parked(tool, task, seconds or 0.0)
        return _ended_elsewhere(tool, task)

    async def _ended(self, task: Task, on_progress: Callable[[Progress], object] | None) -> Task:
        async with self._worker.feed.of_task(task.id) as bell:
            shown = None
            while True:
                bell.clear()
                task = await endured(partial(self._worker.store.get, task.id)) or task
                if on_progress is not None and task.progress not in (None, shown):
                    shown = task.progress
                    on_progress(task.progress)
                if task.state.terminal:
                    return task
                await bell.wait()

    # What waits for an application

    def work_for(self, task: Task) -> Work | None:
        """How a recorded run is taken up here; None where this registry does not have its tool."""
        tool = self._registry.find(task.spec.get("tool", ""))
        if tool is None or tool.function is None or task.spec.get("redacted"):
            return None
        return _calling(tool, tool.validate(task.spec["arguments"]))


def _checked(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the tool is called with. Also as JSON: the call may have to be put on record."""
    values = tool.validate(arguments)
    if arguments:
        check_arguments(arguments)
    return values


async def _end_with_caller(work: "asyncio.Task[Outcome | Failure]") -> None:
    work.cancel()
    await asyncio.wait((work,), timeout=_LAST_WORDS_S)


def _seconds(budget: Any) -> float | None:
    if budget is None:
        return None
    if not isinstance(budget, int | float) or not 0 <= budget <= LONGEST_RUNTIME_S:
        raise UsageError("a budget is 0 or more seconds", remedy="use None for none")
    return float(budget)


def _failed(parking: "asyncio.Future[Task]") -> bool:
    return parking.cancelled() or parking.exception() is not None


def _parked(tool: Tool, task: Task, seconds: float) -> Invocation:
    text = (
        f"{tool.display_name} takes longer than {seconds:g} s and goes on in the background as "
        f"{task.id}. You will be told when it ends: do not call it again, do not poll."
    )
    return Invocation(tool.name, parked=True, task=task, timeout_seconds=seconds, message=text)


def _calling(tool: Tool, values: dict[str, Any]) -> Work:
    return partial(carry_out, tool, values)


def _ended_elsewhere(tool: Tool, task: Task) -> Invocation:
    """What the record says of it."""
    well = task.state is State.SUCCEEDED
    error = None if well else task.error.message if task.error is not None else "it was stopped"
    return Invocation(
        tool.name,
        success=well,
        result=task.result,
        summary=task.summary,
        error=error,
        usage=task.usage,
    )


def _finished(tool: Tool, given: Outcome | Failure) -> Invocation:
    if isinstance(given, Failure):
        return Invocation(tool.name, success=False, error=given.message, connection=given.provider)
    return Invocation(
        tool.name,
        success=given.success,
        result=given.result,
        summary=given.summary,
        raw_output=given.raw_output,
        images=tuple(given.images),
        error=None if given.success else given.summary or "the tool says that it failed",
        usage=given.usage,
    )
