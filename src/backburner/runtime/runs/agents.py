"""Asking sub-agents: those that are Python run here, those that are programs with the keeper."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backburner.model import ids
from backburner.model.errors import ToolError, UsageError
from backburner.model.limits import (
    RESULT_MAX_BYTES,
    SPEC_MAX_BYTES,
    TITLE_MAX_CHARS,
)
from backburner.model.node import PROGRAM
from backburner.model.order import ANY_TIME, Order
from backburner.model.outcome import Outcome
from backburner.model.states import Kind
from backburner.model.task import NewTask, Task, check_start, preview
from backburner.model.values import value
from backburner.model.wake import Wake, to_wake
from backburner.runtime.runs.run import Work
from backburner.runtime.runs.tools import Caller
from backburner.runtime.runs.worker import RunWorker
from backburner.runtime.schedules.work import waits_for
from backburner.runtime.tasks import StartOptions, TaskService
from backburner.work.agents.adapt import Maker
from backburner.work.agents.attachments import Attachment
from backburner.work.agents.command import CommandAgent, with_attachments
from backburner.work.agents.media import Media, keep
from backburner.work.agents.protocol import AgentRequest
from backburner.work.agents.running import run_agent
from backburner.work.assignment import Assignment, base_spec, launch_from_here
from backburner.work.process.wrapper import Launch
from backburner.work.tools.context import Context
from backburner.work.tools.execution import Failure, failure_of, outcome_of
from backburner.work.tools.registry import Registry

if TYPE_CHECKING:
    from backburner.runtime.runs.elsewhere import Elsewhere

DEFAULT_AGENT = "default"

_SUMMARY_MAX_CHARS = 200
_TEXT_MAX_BYTES = RESULT_MAX_BYTES // 2
"""Of an answer: as JSON it may be longer, and the names of files come beside it."""

OwnSession = Callable[[Caller, str], Any]
"""Makes the session of an agent: of which caller, for which task."""


@value
class Asking:
    """What somebody asks, and of which agent."""

    prompt: str
    agent: str = DEFAULT_AGENT
    attachments: Sequence[Attachment] = ()
    model: str | None = None
    title: str | None = None
    max_runtime_s: float | None = None
    keep_children: bool = False
    wake: str = Wake.ON_TERMINAL.value
    id: str | None = None
    order: Order = ANY_TIME

    def checked(self) -> "Asking":
        """The same, in a form that can be kept. UsageError."""
        # What is no UTF-8 came from a terminal or a chat, and no model could read it either.
        prompt = self.prompt.encode(errors="replace").decode()
        if not prompt.strip():
            raise UsageError("there is no prompt", remedy="say what the agent is to do")
        if len(prompt.encode()) > SPEC_MAX_BYTES:
            raise UsageError(
                f"the prompt is longer than {SPEC_MAX_BYTES // 1024} KiB",
                remedy="attach it as a file",
            )
        check_start(self.id, self.max_runtime_s)
        return replace(self, prompt=prompt, wake=to_wake(self.wake).value)

    def spec(self, depth: int) -> dict[str, Any]:
        """As the record keeps it."""
        files = [each.document() for each in self.attachments]
        return {
            "agent": self.agent,
            "prompt": self.prompt,
            "depth": depth,
            "keep_children": self.keep_children,
            "wake": self.wake,
            **({"model": self.model} if self.model is not None else {}),
            **({"attachments": files} if files else {}),
        }


class AgentService:
    """Asks the agents of one application."""

    def __init__(
        self,
        worker: RunWorker,
        tasks: TaskService,
        agents: Mapping[str, Maker | CommandAgent],
        registry: Registry,
        *,
        own_session: OwnSession,
        elsewhere: "Elsewhere | None" = None,
    ) -> None:
        """In a shared record there may be agents ``elsewhere``."""
        self._worker = worker
        self._tasks = tasks
        self._agents = agents
        self._registry = registry
        self._own_session = own_session
        self._elsewhere = elsewhere

    async def ask(self, caller: Caller, asking: Asking) -> Task:
        """Start an agent on a prompt. Returns when that is on disk."""
        if self._elsewhere is not None and asking.agent not in self._agents:
            await self._elsewhere.look()
        agent = self._agent(asking.agent)
        asking = asking.checked()
        if isinstance(agent, CommandAgent):
            return await self._ask_program(agent, caller, asking)
        new = self._new(caller, asking)
        if agent is None:
            return await self._ask_elsewhere(new, asking)
        return await self._worker.start(
            new,
            self._work(agent, caller, asking, new.id),
            limit=self._worker.settings.agents_per_session,
            session=caller.session,
            folder=caller.folder,
        )

    def work_for(self, task: Task, caller: Caller) -> Work | None:
        """How a recorded prompt is taken up here; None where this application cannot."""
        agent = self._agents.get(task.spec.get("agent", ""))
        expected = len(task.spec.get("attachments", ()))
        if agent is None or isinstance(agent, CommandAgent) or (expected and not self._elsewhere):
            return None
        asking = Asking(task.spec["prompt"], task.spec["agent"], model=task.spec.get("model"))
        return self._work(agent, caller, asking, task.id, expected=expected)

    def _agent(self, name: str) -> Maker | CommandAgent | None:
        """None for one that another machine has."""
        others: Mapping[str, Any] = {} if self._elsewhere is None else self._elsewhere.agents
        agent = self._agents.get(name)
        if agent is None and name not in others:
            known = ", ".join(sorted({*self._agents, *others}))
            raise UsageError(f"there is no agent {name!r}", remedy=f"known are {known}")
        return agent

    async def _ask_elsewhere(self, new: NewTask, asking: Asking) -> Task:
        """Write a prompt that a machine takes up which has the agent."""
        settings = self._worker.settings
        assert self._elsewhere is not None
        if PROGRAM in self._elsewhere.agents[asking.agent]:
            # Its command line, folder and variables are its machine's.
            if asking.attachments:
                raise UsageError(
                    f"the agent {asking.agent!r} is a program on another machine, which takes no "
                    "attachments",
                    remedy="put them where that machine finds them, and say so in the prompt",
                )
            spec = base_spec(settings, cwd="", env={}, separate_stderr=True)
            del spec["cwd"]
            new = replace(new, spec=new.spec | spec)
        limit = settings.agents_per_session
        detail = waits_for(new.kind, new.spec, shared=True)
        return await self._elsewhere.ask(new, asking.attachments, limit=limit, detail=detail)

    def names_here(self) -> list[str]:
        """The agents that this process can carry out in itself."""
        return [name for name, agent in self._agents.items() if not isinstance(agent, CommandAgent)]

    def _new(self, caller: Caller, asking: Asking) -> NewTask:
        settings = self._worker.settings
        assert caller.scope.session is not None
        title = preview(asking.title, TITLE_MAX_CHARS) if asking.title else preview(asking.prompt)
        return NewTask(
            id=asking.id or ids.new_id(),
            owner=caller.scope.owner,
            session=caller.scope.session,
            kind=Kind.AGENT,
            title=title,
            spec=asking.spec(caller.depth) | {"log": [settings.log_head, settings.log_tail]},
            max_runtime_s=asking.max_runtime_s,
            parent=caller.parent,
            order=asking.order,
        )

    # In this process

    def _work(
        self, make: Maker, caller: Caller, asking: Asking, task_id: str, *, expected: int = 0
    ) -> Work:
        """So many attachments are ``expected`` in the record."""
        request = AgentRequest(
            asking.prompt,
            session=self._own_session(caller, task_id),
            model=asking.model,
            registry=self._registry,
        )

        async def work(context: Context) -> Outcome | Failure:
            context.session = request.session
            try:
                files = await self._brought(task_id, expected) if expected else asking.attachments
                asked = replace(request, attachments=files)
                outcome, media = await run_agent(make, asked, context)
            except asyncio.CancelledError as error:
                running = asyncio.current_task()
                if running is None or running.cancelling():
                    raise
                return _failure(asking, error)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it ends the run
                return _failure(asking, error)
            ended = outcome_of(outcome)
            if isinstance(ended, Failure):
                return ended
            return await self._with_media(_summed_up(ended), media, context)

        return work

    async def _brought(self, task_id: str, expected: int) -> tuple[Attachment, ...]:
        assert self._elsewhere is not None
        found = await self._elsewhere.attachments(task_id)
        if len(found) != expected:
            raise ToolError("its attachments stayed with the program that asked")
        return found

    async def _with_media(self, outcome: Outcome, media: Media, context: Context) -> Outcome:
        """The outcome with copies of its media, which a text names beside itself."""
        if not media:
            return outcome
        task = await self._worker.store.get(context.task)
        assert task is not None, "it runs"
        folder = self._worker.home.attempt(task.id, task.attempt)
        kept, refused = await asyncio.to_thread(keep, media, folder, self._worker.settings)
        for reason in refused:
            context.output("stderr", f"{reason}\n")
        if not kept or not isinstance(outcome.result, str):
            return outcome
        return replace(outcome, result={"text": outcome.result, "media": kept})

    # As a program

    def assignment(self, asking: Asking) -> Assignment | None:
        """How the keeper starts it for a conversation; None where it runs in an application."""
        agent = self._agent(asking.agent)
        if not isinstance(agent, CommandAgent):
            return None
        return self._assignment(agent, asking.checked(), 0)

    def launch_for(self, task: Task) -> Launch | None:
        """How this machine starts a recorded prompt for one of its programs; None where it has not

        such a one. UsageError where the prompt is none for it.
        """
        agent = self._agents.get(task.spec.get("agent", ""))
        if not isinstance(agent, CommandAgent):
            return None
        asking = Asking(task.spec["prompt"], task.spec["agent"])
        return self._assignment(agent, asking, task.spec.get("depth", 0)).launch

    async def _ask_program(self, agent: CommandAgent, caller: Caller, asking: Asking) -> Task:
        return await self._tasks.start_process(
            caller.scope,
            self._assignment(agent, asking, caller.depth),
            StartOptions(
                asking.title, asking.max_runtime_s, asking.id, caller.parent, order=asking.order
            ),
        )

    def _assignment(self, agent: CommandAgent, asking: Asking, depth: int) -> Assignment:
        settings = self._worker.settings
        prompt = with_attachments(asking.prompt, asking.attachments)
        argv = agent.argv(prompt)
        cwd = os.path.join(os.getcwd(), agent.cwd) if agent.cwd is not None else os.getcwd()
        spec = asking.spec(depth) | {"command": list(agent.command)}
        spec |= base_spec(settings, cwd=cwd, env=agent.env, separate_stderr=True)
        launch = launch_from_here(
            argv,
            cwd=cwd,
            env=agent.env,
            separate_stderr=True,
            stdin_text=prompt if agent.prompt == "stdin" else None,
        )
        return Assignment(Kind.AGENT, asking.prompt, spec, launch)


def _failure(asking: Asking, error: BaseException) -> Failure:
    return failure_of(error, name=f"the agent {asking.agent}", arguments={})


def _summed_up(outcome: Outcome) -> Outcome:
    """Within the size of a result, and with the beginning of the answer as its summary."""
    text = outcome.result
    if not isinstance(text, str):
        return outcome
    if len(data := text.encode(errors="replace")) > _TEXT_MAX_BYTES:
        text = f"{data[:_TEXT_MAX_BYTES].decode(errors='ignore')}\n[the rest is left out]"
    summary = outcome.summary or preview(text, _SUMMARY_MAX_CHARS) or None
    return replace(outcome, result=text, summary=summary)
