"""Calls of the wrapped server's tools: each is a run of the application (`runtime.runs`).

So a call past its budget is parked as any tool's is, its end is recorded and told, a stop reaches
the server as a cancellation, and a client that goes away before takes its call along.
"""

import asyncio
import contextvars
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.shared.exceptions import MCPError

from backburner.app import Session
from backburner.mcp.results import passed_on, protocol_error
from backburner.mcp.wrap.asked import Asked
from backburner.mcp.wrap.asking import answered, asks, ended
from backburner.mcp.wrap.meta import PROGRESS, Json, meta_of
from backburner.mcp.wrap.upstream import ServerGone, Upstream
from backburner.model.outcome import Outcome
from backburner.model.redaction import redact_text
from backburner.runtime.runs.tools import Invocation
from backburner.work.tools.arguments import Arguments
from backburner.work.tools.context import Context
from backburner.work.tools.registry import Registry
from backburner.work.tools.tool import Tool

_LOOK_S = 0.05
_LOOKS = 40


@dataclass(slots=True)
class Call:
    """One call of a client, and what the server answered."""

    calls: "Calls"
    asked: Asked
    answer: Json | None = None
    error: MCPError | None = None
    gone: str | None = None
    """Why there is no answer."""


_current: contextvars.ContextVar[Call | None] = contextvars.ContextVar("call", default=None)


@dataclass(slots=True)
class Calls:
    """Calls tools of one wrapped server."""

    registry: Registry
    upstream: Upstream
    budget_s: float | None
    _running: set[Context] = field(default_factory=set[Context])

    def register(self, tool: Json) -> None:
        """Make a tool of the server known, as one that is carried out here."""
        name = str(tool["name"])
        schema = tool.get("inputSchema")
        known = cast("Json", schema) if isinstance(schema, dict) else {"type": "object"}

        async def execute(arguments: Json, context: Context) -> Outcome:
            call = _current.get()
            assert call is not None  # it is only ever called, for a client
            return await call.calls.execute(call, arguments, context)

        made = Tool(
            name=name,
            display_name=str(tool.get("title") or name),
            description=str(tool.get("description") or name),
            parameters=known,
            budget=None,
            # Parked where it takes long, and never queued: another wrap in this home may have
            # a tool of the same name, of another server. Nor is it called twice blindly, whatever
            # it says of itself.
            background=False,
            readonly=False,
            idempotent=False,
            function=execute,
            is_async=True,
            arguments=Arguments(name, known, "context", _taken),
            options={},
        )
        self.registry.register(made, replace=True)

    async def call(self, session: Session, asked: Asked) -> tuple[Call, Invocation]:
        """`tools/call` of a client: what the server answered, or that it is parked."""
        call = Call(self, asked)
        # A task of its own: who waits may be cancelled again and again, the call only once.
        invoking = asyncio.ensure_future(self._invoke(session, call))
        try:
            return call, await asyncio.shield(invoking)
        except asyncio.CancelledError:
            invoking.cancel()
            raise

    @property
    def running(self) -> bool:
        """Whether the server is at work on any."""
        return bool(self._running)

    async def go_on(self) -> bool:
        """Whether something goes on in the background, now that the client is gone."""
        for _ in range(_LOOKS):
            if all(context.task is not None for context in self._running):
                break
            await asyncio.sleep(_LOOK_S)  # what nobody waits for any more is being cancelled
        return bool(self._running)

    async def finished(self) -> None:
        """Wait until everything that goes on in the background has ended."""
        while await self.go_on():
            for context in [*self._running]:
                if context.task is not None:
                    await (await context.session.task(context.task)).wait()
            await asyncio.sleep(_LOOK_S)

    async def _invoke(self, session: Session, call: Call) -> Invocation:
        _current.set(call)
        params = call.asked.params
        arguments = params.get("arguments")
        given: Any = {} if arguments is None else arguments
        return await session.invoke(params["name"], given, budget=self.budget_s)

    async def execute(self, call: Call, arguments: Json, context: Context) -> Outcome:
        """Have the server do it, and answer what it asks for once nobody waits any more."""
        params = call.asked.params
        meta = meta_of(params)
        meta.pop(PROGRESS, None)
        params |= {"arguments": arguments, "_meta": meta}

        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.progress(progress, total, label=message)
            await call.asked.progress(progress, total, message)

        async def ask(method: str, params: Json) -> Json:
            return await self.upstream.request(method, params, on_progress=report)

        self._running.add(context)
        try:
            answer = await ask("tools/call", params)
            while context.task is not None:
                if asks(answer):
                    answer = await ask("tools/call", params | await answered(context, answer))
                elif (end := await ended(answer, meta, ask)) is not None:
                    answer = end
                else:
                    break
        except MCPError as error:
            call.error = error
            return protocol_error(redact_text(error.message), code=error.code, data=error.data)
        except ServerGone as error:
            call.gone = str(error)
            raise
        finally:
            self._running.discard(context)
        call.answer = answer
        return passed_on(answer)


def _taken(given: Any) -> Json:
    """The server checks the arguments itself; they stay in one piece, whatever their names are."""
    if not isinstance(given, Mapping):
        raise ValueError  # noqa: TRY004 - as of a validator
    return {"arguments": {**cast("Mapping[str, Any]", given)}}
