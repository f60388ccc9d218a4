"""What a tool or an agent has at hand while it runs: it reports, asks, and hears of things.

The context itself does nothing: whoever carries the call out gives it a `Sink`, which is the
record of an application (`runtime.runs`), the report file of a process (`work.child`), or nothing.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import Any, Literal, Protocol

from backburner.work.tools.own_folder import OwnFolder

Stream = Literal["stdout", "stderr"]


class Sink(Protocol):
    """Where a call puts what it says. Nothing here raises for what the call has said."""

    def status(self, text: str) -> None:
        """What it is doing now."""
        ...

    def output(self, stream: Stream, text: str) -> None:
        """A piece of its output."""
        ...

    def progress(
        self, current: float, total: float | None, unit: str | None, label: str | None
    ) -> None:
        """How far it is."""
        ...

    async def ask(
        self, question: str, schema: Mapping[str, Any] | None, timeout: float | None
    ) -> Any:
        """Ask the session and wait: the text, or a value that fits ``schema``. TimeIsUp."""
        ...

    async def receive(self, timeout: float | None) -> str:
        """The next message that somebody sends it. TimeIsUp."""
        ...

    async def tell(self, text: str) -> None:
        """Tell the session something while it goes on."""
        ...


class Done(Awaitable[None]):
    """Something that was done already: `context.status(…)` may be awaited, and need not be."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return iter(())  # type: ignore[return-value]


_DONE = Done()


class Context:
    """The first argument of a tool that wants one."""

    __slots__ = ("_folder", "_sink", "session", "task")

    def __init__(
        self, sink: Sink, *, session: Any = None, task: Any = None, folder: str | None = None
    ) -> None:
        self._sink = sink
        self.session = session
        """The session that called, for starting more work; None where none did."""
        self.task = task
        """The id of the task, once it has one: a call within its budget has none yet."""
        self._folder = folder

    @property
    def folder(self) -> str | None:
        """Where file tools may work; None where the session has no folder.

        The session's own one in the home is made here, for whoever asks.
        """
        if isinstance(self._folder, OwnFolder):
            self._folder.make()
        return self._folder

    @folder.setter
    def folder(self, folder: str | None) -> None:
        self._folder = folder

    def status(self, text: str) -> Done:
        """Say in a few words what is being done now."""
        self._sink.status(text)
        return _DONE

    def output(self, stream: Stream, text: str) -> Done:
        """Write to the log of the task, as ``stdout`` or ``stderr``."""
        self._sink.output(stream, text)
        return _DONE

    def progress(
        self,
        current: float,
        total: float | None = None,
        unit: str | None = None,
        label: str | None = None,
    ) -> Done:
        """Say how far it is."""
        self._sink.progress(current, total, unit, label)
        return _DONE

    async def ask(
        self,
        question: str,
        *,
        schema: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Ask the session and wait for the answer: a text, or a value that fits ``schema``.

        TimeIsUp after ``timeout`` seconds; nobody is asked any more then.
        """
        return await self._sink.ask(question, schema, timeout)

    async def receive(self, *, timeout: float | None = None) -> str:
        """Wait for the next message to this task. TimeIsUp after ``timeout`` seconds."""
        return await self._sink.receive(timeout)

    async def tell(self, text: str) -> None:
        """Tell the session something now, while the work goes on."""
        await self._sink.tell(text)


Carry = Callable[[Coroutine[Any, Any, Any]], Any]
"""Carries a coroutine out for a thread that waits for it."""


class BlockingContext:
    """The same for a plain function: what it asks or waits for blocks its thread."""

    __slots__ = ("_carry", "_inner", "output", "progress", "status")

    def __init__(self, inner: Context, carry: Carry) -> None:
        self._inner = inner
        self._carry = carry
        self.status = inner.status
        self.output = inner.output
        self.progress = inner.progress

    @property
    def session(self) -> Any:
        """The session that called; None where none did."""
        return self._inner.session

    @property
    def task(self) -> Any:
        """The id of the task, once it has one."""
        return self._inner.task

    @property
    def folder(self) -> str | None:
        """Where file tools may work; None where the session has no folder."""
        return self._inner.folder

    def ask(
        self,
        question: str,
        *,
        schema: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Ask the session and wait for the answer; see `Context.ask`."""
        return self._carry(self._inner.ask(question, schema=schema, timeout=timeout))

    def receive(self, *, timeout: float | None = None) -> str:
        """Wait for the next message to this task; see `Context.receive`."""
        return self._carry(self._inner.receive(timeout=timeout))

    def tell(self, text: str) -> None:
        """Tell the session something now, while the work goes on."""
        self._carry(self._inner.tell(text))
