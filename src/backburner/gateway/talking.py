"""Talking with the agent: a plain message is a turn, carried out by a process of the keeper.

So a turn outlives a gateway that is killed, like any task; it belongs to a session beside that of
the chat, because it is no task of the people there. Each chat has one turn at a time.
"""

import asyncio
import contextlib
import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backburner.gateway import wording
from backburner.gateway.memory import Memory, Said, as_prompt
from backburner.gateway.people import TALK
from backburner.model.errors import NotFound, UsageError
from backburner.model.ids import id_for
from backburner.model.states import State
from backburner.model.task import preview
from backburner.store.protocol import Scope
from backburner.work.agents.command import CommandAgent
from backburner.work.tools.own_folder import OwnFolder

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Task
    from backburner.gateway.desk import Rights

BACKGROUND = "default"
"""The agent that carries out a prompt of /background."""
CHAT = "chat"
"""The one that answers plain messages."""

NO_MODEL = (
    "I can only talk where a model is configured: start the gateway with BACKBURNER_MODEL (such as"
    " openai:gpt-5) and the key of its provider in the environment, or with --agent and a command"
    " line. Everything else works: /help"
)
STILL_NO_MODEL = "No model is configured; /help lists what works without one."

TURN_MAX_S = 1800.0


class Agents:
    """The agents of a gateway: a command line of the owner's choice, or the built-in one."""

    def __init__(self, backburner: "Backburner", command: str | None, rights: "Rights") -> None:
        self._backburner = backburner
        self._words = None if command is None else _words(command)
        if self._words is not None:
            return
        for name in (BACKGROUND, CHAT):
            # -P: what lies in the folder where it works must not be taken for a module of ours.
            program = [sys.executable, "-P", "-m", "backburner.gateway.answering", name]
            options = [
                *(["--shell"] if rights.jobs else []),
                *(["--folder", rights.folder] if rights.folder is not None else []),
            ]
            backburner.agent(name, CommandAgent([*program, *options], prompt="stdin"))

    @property
    def any(self) -> bool:
        """Whether there is somebody to talk with."""
        return self._words is not None or bool(os.environ.get("BACKBURNER_MODEL", "").strip())

    def named(self, name: str, session: "Session") -> str:
        """What to ask for in this session: a program works in its folder."""
        if self._words is None:
            return name
        folder = session.folder
        if isinstance(folder, OwnFolder):
            folder.make()
        words = self._words
        if name == CHAT:
            # What it starts with `backburner run` is the chat's, and does not end with the turn.
            owner, chat = session.scope.owner, session.name
            place = [f"BACKBURNER_OWNER={owner}", f"BACKBURNER_SESSION={chat}"]
            words = ["env", "-u", "BACKBURNER_TASK_ID", *place, *words]
        own = f"{name} {session.scope.owner} {session.name}"
        self._backburner.agent(own, CommandAgent(words, cwd=folder))
        return own


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--agent: {error}") from None
    if not words:
        raise UsageError("--agent: there is no command", remedy="such as: --agent 'claude -p'")
    return words


class Talking:
    """The turns of all chats."""

    def __init__(self, backburner: "Backburner", memory: Memory, agents: Agents) -> None:
        self._backburner = backburner
        self._memory = memory
        self.agents = agents
        self._turns: dict[Scope, asyncio.Lock] = {}
        self._live: dict[Scope, Task] = {}
        self._waiting: Counter[Scope] = Counter()
        self._stops: Counter[Scope] = Counter()
        """How often somebody stopped: what was said before the last time is left out."""
        self._hinted: set[Scope] = set()

    def is_live(self, scope: Scope) -> bool:
        """Whether a turn is running there: what the session is to be told waits for its end."""
        return scope in self._live

    async def is_busy(self, scope: Scope) -> bool:
        """The same, but for a turn that waits for an answer itself."""
        task = self._live.get(scope)
        return task is not None and (await task.refresh()).state is not State.INPUT_REQUIRED

    def hint(self, scope: Scope) -> str | None:
        """What to say where there is nobody to talk with: at length the first time."""
        if self.agents.any:
            return None
        first = scope not in self._hinted
        self._hinted.add(scope)
        return NO_MODEL if first else STILL_NO_MODEL

    async def answer(
        self, session: "Session", turn: str, message: str, paths: Sequence[str]
    ) -> "tuple[str, Task] | None":
        """What the agent says to a message; None where somebody stopped it before its turn came.

        ``turn`` names it, also after a restart.
        """
        scope = session.scope
        lock = self._turns.setdefault(scope, asyncio.Lock())
        stops = self._stops[scope]
        self._waiting[scope] += 1
        try:
            await lock.acquire()
        finally:
            self._waiting[scope] -= 1
        try:
            if self._stops[scope] != stops:
                return None
            task = await self._task(session, id_for(turn, "turn"), message, paths)
            self._live[scope] = task
            try:
                await task.wait()
            finally:
                del self._live[scope]
        finally:
            lock.release()
        said = _said(task)
        if task.state is State.SUCCEEDED:
            self._memory.add(scope, Said("user", message, turn), Said("you", said, turn))
        return said, task

    async def stop(self, scope: Scope) -> bool:
        """End the turn that is running there, if one is, and leave out those that wait."""
        task = self._live.get(scope)
        if task is None:
            return False
        self._stops[scope] += 1
        await task.stop()
        return True

    def waiting(self, scope: Scope) -> int:
        """How many messages wait for their turn there."""
        return self._waiting[scope]

    async def _task(self, chat: "Session", id: str, message: str, paths: Sequence[str]) -> "Task":
        session = beside(self._backburner, chat.scope)
        with contextlib.suppress(NotFound):  # of a gateway that was killed meanwhile
            return await session.task(id)
        prompt = as_prompt(self._memory.of(chat.scope), message)
        return await session.ask(
            prompt,
            agent=self.agents.named(CHAT, chat),
            attachments=paths,
            title=preview(message) or "a message",
            max_runtime=TURN_MAX_S,
            wake="silent",
            id=id,
        )


def beside(backburner: "Backburner", scope: Scope) -> "Session":
    """The session that has the turns of a chat."""
    return backburner.session(f"{scope.session}{TALK}", owner=scope.owner)


def _said(task: "Task") -> str:
    if task.state is State.SUCCEEDED:
        return wording.answer(task.record) or "(no words)"
    if task.state is State.CANCELED:
        return "Stopped."
    return f"I could not answer: {wording.why(task.record)}"
