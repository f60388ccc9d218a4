"""One conversation: starts tasks, finds them again, is told about them."""

import contextlib
import os
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from backburner.app.signal import Signal
from backburner.app.task import Task
from backburner.model.allowance import Allowance
from backburner.model.input import Input, WindowSize
from backburner.model.limits import (
    DEFAULT_MAX_RUNTIME_S,
)
from backburner.model.order import Order
from backburner.model.signals import INBOX, SignalKind, SignalState, to_kinds
from backburner.model.states import State
from backburner.model.watching import Watching
from backburner.runtime.tasks import StartOptions
from backburner.store.protocol import Scope
from backburner.work.shell import ShellCommand

if TYPE_CHECKING:
    from backburner.app.home import Backburner


class Session:
    """One conversation: starts tasks, finds them again, is told about them."""

    def __init__(self, backburner: "Backburner", scope: Scope) -> None:
        self._backburner = backburner
        self.scope = scope

    @property
    def name(self) -> str:
        """The session's name."""
        assert self.scope.session is not None
        return self.scope.session

    async def run(
        self,
        command: str | Sequence[str],
        *,
        title: str | None = None,
        max_runtime: float | None = DEFAULT_MAX_RUNTIME_S,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        separate_stderr: bool = False,
        stdin: bool = False,
        pty: bool = False,
        size: tuple[int, int] | None = None,
        notify: bool = False,
        ready_output: str | None = None,
        ready_port: int | None = None,
        ready_file: str | os.PathLike[str] | None = None,
        ready_http: str | None = None,
        match: str | None = None,
        silence: float | None = None,
        after: str | Sequence[str] = (),
        after_failure: bool = False,
        retries: int = 0,
        queue: str | None = None,
        nice: int | None = None,
        memory: int | None = None,
        cpu_time: float | None = None,
        id: str | None = None,
    ) -> "Task":
        """Start a shell task: a line for a shell, or a list of words. Returns when it is on disk.

        ``max_runtime`` is in seconds, None for no limit. It runs in ``cwd`` with this process's
        environment and ``env``. With ``stdin`` it can be sent input; with ``pty`` it has a terminal
        of ``size`` columns and rows (those of the terminal here, else 80 and 24).

        It is ready when a line of its output matches, when it listens on a port, when it has
        written a file or when an address answers; see `Task.wait`. The session is told then, of
        lines that ``match``, and of ``silence`` seconds without output.

        It starts ``after`` other tasks (ids, or enough of them), and fails where one of those did
        not succeed, unless ``after_failure``; waits for its place in a ``queue``; and is tried
        again up to ``retries`` times. ``memory`` is in bytes, ``cpu_time`` in seconds.
        """
        first = (after,) if isinstance(after, str) else tuple(after)
        order = Order(queue, first, after_failure, retries)
        allowance = Allowance(nice, memory, cpu_time)
        reads = Input.chosen(stdin=stdin, pty=pty)
        window = WindowSize(*size) if size is not None else None
        watching = Watching.of(
            ready_output=ready_output,
            ready_port=ready_port,
            ready_file=None if ready_file is None else os.fspath(ready_file),
            ready_http=ready_http,
            match=match,
            silence=silence,
        )
        folder = os.path.join(os.getcwd(), cwd) if cwd is not None else os.getcwd()
        record = await self._backburner.tasks.start_shell(
            self.scope,
            ShellCommand(
                command,
                folder,
                dict(env or {}),
                separate_stderr,
                reads,
                window,
                watching,
                allowance,
            ),
            StartOptions(
                title,
                max_runtime,
                id,
                os.environ.get("BACKBURNER_TASK_ID"),
                notify=_screen() if notify else None,
                order=order,
            ),
        )
        return Task(self._backburner, record)

    async def task(self, reference: str) -> "Task":
        """A task by its id, or by enough of it to be the only one. NotFound, Ambiguous."""
        return Task(self._backburner, await self._backburner.tasks.find(reference, self.scope))

    async def tasks(
        self, *, limit: int = 50, states: Sequence[State] = (), before: int | None = None
    ) -> list["Task"]:
        """Tasks of this session, newest first."""
        records = await self._backburner.store.newest(
            self.scope, limit=limit, states=states, before=before
        )
        return [Task(self._backburner, record) for record in records]

    async def signals(self, *, follow: bool = True) -> AsyncGenerator["Signal"]:
        """What the session is to be told, as it happens. Each is this consumer's until its `ack`.

        Without ``follow``, only what is there.
        """
        consumed = self._backburner.inbox.consume(self.scope, follow=follow)
        # Closed with us: what was not acknowledged has to go back before the home is closed.
        async with contextlib.aclosing(consumed):
            async for record in consumed:
                yield Signal(self._backburner, record)

    async def told(
        self,
        *,
        states: Sequence[SignalState] = (),
        channel: str | None = INBOX,
        after: int = 0,
        limit: int = 100,
    ) -> list["Signal"]:
        """What the session was and is to be told, without claiming anything; oldest first.

        ``channel`` is where: its inbox, a channel by name, or None for all of them.
        """
        records = await self._backburner.store.signals(
            self.scope, states=states, channel=channel, after=after, limit=limit
        )
        return [Signal(self._backburner, record) for record in records]

    async def wish(self, kinds: Collection[SignalKind] | None) -> None:
        """What the session wishes to be told from now on: these kinds, none, or None for all."""
        await self._backburner.store.wish(self.scope, None if kinds is None else to_kinds(kinds))

    async def wished(self) -> frozenset[SignalKind] | None:
        """What the session wishes to be told; None for everything."""
        return await self._backburner.store.wished(self.scope)


def _screen() -> str:
    from backburner.runtime.channels import desktop_bus  # slow to load, seldom needed

    return desktop_bus()
