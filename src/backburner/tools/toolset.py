"""A set of tools for one model: it is called by name, and answers also with what the session has
to be told.

Pending signals ride along with any answer. They are this client's from then on and count as
delivered when it calls again, because then it has read them (X1); until that they are repeated
under the same key, to it or, after a lease, to somebody else.
"""

import contextlib
import itertools
import os
from collections.abc import Sequence
from typing import Any, cast

from backburner.model.errors import BackburnerError, InternalError, UsageError
from backburner.model.limits import SIGNAL_LEASE_S
from backburner.model.redaction import redact_text
from backburner.model.signals import Signal
from backburner.store.protocol import Scope, Store
from backburner.tools.arguments import checked, shown
from backburner.tools.seen import Answer, Form, Offer, by_name
from backburner.work.tools.execution import failure_of

_numbers = itertools.count(1)

_AT_ONCE = 10
"""Signals that ride along with one answer; the rest comes with the next."""


class Toolset:
    """What `session.toolset()` gives."""

    def __init__(
        self, offers: Sequence[Offer], store: Store, scope: Scope, *, takes: bool = True
    ) -> None:
        """``takes``: what the session has to be told is this client's to hear."""
        self._offers = by_name(offers)
        self._takes = takes
        self._store = store
        self._scope = scope
        self._consumer = f"tools.{os.getpid()}.{next(_numbers)}"
        self._shown: list[str] = []
        """Keys of what rode along with the last answer."""

    @property
    def names(self) -> list[str]:
        """Of its tools."""
        return [*self._offers]

    @property
    def offers(self) -> list[Offer]:
        """Its tools."""
        return [*self._offers.values()]

    def schemas(self, form: Form = "openai") -> list[dict[str, Any]]:
        """Every tool as the interface of a model takes it: "openai", "anthropic" or "mcp"."""
        if form not in ("openai", "anthropic", "mcp"):
            raise UsageError(
                f"{form!r} is no form of a schema", remedy="use openai, anthropic or mcp"
            )
        return [offer.document(form) for offer in self._offers.values()]

    async def call(self, name: str, arguments: Any = None) -> Answer:
        """Call a tool. Whatever goes wrong is an answer too, in words for the model."""
        offer = self._offers.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if offer is None:
            known = ", ".join(self._offers)
            return Answer(f"there is no tool {shown(name)} (known are {known})", is_error=True)
        answer: Answer | None = None
        try:
            await self.heard()
            answer = await self._answer(offer, arguments)
            return await self.accompany(answer)
        except Exception as error:  # noqa: BLE001 - the model goes on whatever we did not foresee
            told = _unforeseen(error, offer.name, arguments)
            return answer or told  # what was done is done

    async def _answer(self, offer: Offer, arguments: Any) -> Answer:
        try:
            return await offer.handler(checked(offer, {} if arguments is None else arguments))
        except BackburnerError as error:
            return _failed(error.code, redact_text(str(error)))

    async def close(self) -> None:
        """The client is gone: what it was shown and did not come back for goes to the next."""
        await self._store.release_signals(self._consumer)

    async def heard(self) -> None:
        """The client calls again, so it has read what rode along; `call` says so by itself."""
        if not self._shown:
            return
        heard, self._shown = self._shown, []  # a call at the same time may add to it
        done = False
        try:
            with contextlib.suppress(BackburnerError):  # it is told again, under the same key
                await self._store.acknowledge(heard, self._scope)
                done = True
        finally:
            if not done:
                self._shown[:0] = heard

    async def riding_along(self) -> list[Signal]:
        """What goes with an answer that this client gets from elsewhere, as with those of `call`"""
        await self.heard()
        return await self._taken()

    async def _taken(self) -> list[Signal]:
        signals = await self._pending() if self._takes else []
        self._shown += [signal.key for signal in signals]
        return signals

    async def accompany(self, answer: Answer) -> Answer:
        """The answer, and what rides along; for answers to calls that this set has not made."""
        signals = await self._taken()
        if not signals:
            return answer
        told = "\n".join(f"[{signal.kind}] {signal.text}" for signal in signals)
        data = {**answer.data, "signals": [_document(signal) for signal in signals]}
        return Answer(f"{answer.text}\n\n{told}" if answer.text else told, data, answer.is_error)

    async def _pending(self) -> list[Signal]:
        try:
            return await self._store.claim_signals(
                self._scope, consumer=self._consumer, limit=_AT_ONCE, lease_s=SIGNAL_LEASE_S
            )
        except BackburnerError:  # a full disk: what was called for is answered all the same
            return []


def _failed(code: str, text: str) -> Answer:
    return Answer(text, {"error": {"code": code, "message": text}}, is_error=True)


def _unforeseen(error: Exception, name: str, arguments: Any) -> Answer:
    """It is logged whole; the model gets a reference."""
    given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    failure = failure_of(error, name=name, arguments=given, ours=True)
    return _failed(InternalError.code, failure.message)


def _document(signal: Signal) -> dict[str, Any]:
    return {
        "key": signal.key,
        "task": signal.task,
        "kind": signal.kind.value,
        "text": signal.text,
    }
