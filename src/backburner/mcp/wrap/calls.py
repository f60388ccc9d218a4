"""Calls of the wrapped server's tools: each is a run of the application (`runtime.runs`).

So a call past its budget is parked as any tool's is, its end is recorded and told, a stop reaches
the server as a cancellation, and a client that goes away before takes its call along.
"""

import asyncio
import base64
import binascii
import contextvars
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.shared.dispatcher import DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext

from backburner.app import Session
from backburner.mcp.wrap.asking import answered, asks
from backburner.mcp.wrap.meta import PROGRESS, Json, meta_of
from backburner.mcp.wrap.upstream import ServerGone, Upstream
from backburner.model.errors import BackburnerError, ToolError
from backburner.model.outcome import Image, Outcome
from backburner.model.redaction import redact_text
from backburner.runtime.runs.tools import Invocation
from backburner.work.tools.arguments import Arguments
from backburner.work.tools.context import Context
from backburner.work.tools.registry import Registry
from backburner.work.tools.tool import Tool

Dispatch = DispatchContext[TransportContext]

_SUMMARY_CHARS = 200
_IMAGES_MOST = 20
_LOOK_S = 0.05
_LOOKS = 40


@dataclass(slots=True)
class Call:
    """One call of a client, and what the server answered."""

    params: Json
    dispatch: Dispatch
    answer: Json | None = None
    error: MCPError | None = None
    gone: str | None = None
    """Why there is no answer."""


_current: contextvars.ContextVar[Call | None] = contextvars.ContextVar("call", default=None)


@dataclass(slots=True)
class Calls:
    """Calls tools of the wrapped server in one session."""

    session: Session
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
            return await self._execute(name, arguments, context)

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

    async def call(self, params: Json, dispatch: Dispatch) -> Json:
        """`tools/call` of a client: what the server answers, or that it is parked."""
        call = Call(params, dispatch)
        # A task of its own: who waits may be cancelled again and again, the call only once.
        invoking = asyncio.ensure_future(self._invoke(call))
        try:
            called = await asyncio.shield(invoking)
        except asyncio.CancelledError:
            invoking.cancel()
            raise
        except BackburnerError as error:
            return failed(redact_text(str(error)))
        if called.parked:
            document = called.document()
            return said(document["message"], document)
        if call.error is not None:
            raise call.error
        if call.answer is not None:
            return call.answer
        return failed(call.gone or called.error or "it ended without an answer")

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
                    await (await self.session.task(context.task)).wait()
            await asyncio.sleep(_LOOK_S)

    async def _invoke(self, call: Call) -> Invocation:
        _current.set(call)
        arguments = call.params.get("arguments")
        given: Any = {} if arguments is None else arguments
        return await self.session.invoke(call.params["name"], given, budget=self.budget_s)

    async def _execute(self, name: str, arguments: Json, context: Context) -> Outcome:
        call = _current.get()
        assert call is not None  # it is only ever called, for a client
        meta = meta_of(call.params)
        meta.pop(PROGRESS, None)
        params: Json = {**call.params, "name": name, "arguments": arguments, "_meta": meta}

        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.progress(progress, total, label=message)
            await call.dispatch.progress(progress, total, message)  # nothing once it is answered

        self._running.add(context)
        try:
            answer = await self.upstream.request(
                "tools/call", params, id=call.dispatch.request_id, on_progress=report
            )
            while asks(answer) and context.task is not None:
                again = params | await answered(context, answer)
                answer = await self.upstream.request("tools/call", again, on_progress=report)
        except MCPError as error:
            call.error = error
            raise ToolError(error.message) from None
        except ServerGone as error:
            call.gone = str(error)
            raise
        finally:
            self._running.discard(context)
        call.answer = answer
        return _outcome(answer)


def said(text: str, data: Json | None = None) -> Json:
    """A result of ours."""
    result: Json = {"content": [{"type": "text", "text": text}], "isError": False}
    return result if data is None else {**result, "structuredContent": data}


def failed(text: str) -> Json:
    """A failure of ours, as a model can read it."""
    return {**said(text), "isError": True}


def _taken(given: Any) -> Json:
    """The server checks the arguments itself; they stay in one piece, whatever their names are."""
    if not isinstance(given, Mapping):
        raise ValueError  # noqa: TRY004 - as of a validator
    return {"arguments": {**cast("Mapping[str, Any]", given)}}


def _outcome(answer: Json) -> Outcome:
    """What the record keeps of an answer: all of it as raw output, and its text or data as such."""
    blocks = cast("list[Json]", answer.get("content") or [])
    text = "\n".join(str(block.get("text")) for block in blocks if block.get("type") == "text")
    good = not answer.get("isError") and not asks(answer)
    data = answer.get("structuredContent")
    images = [each for block in blocks[:_IMAGES_MOST] if (each := _image(block)) is not None]
    return Outcome(
        success=good,
        summary=(text[:_SUMMARY_CHARS] if good else text) or None,
        result=text if data is None else data,
        raw_output=answer,
        images=images,
    )


def _image(block: Json) -> Image | None:
    if block.get("type") != "image":
        return None
    try:
        data = base64.b64decode(str(block.get("data")), validate=True)
    except (binascii.Error, ValueError):
        return None
    return Image(data, str(block.get("mimeType") or "image/png"))
