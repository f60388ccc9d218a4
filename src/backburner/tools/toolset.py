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
from typing import Any

from backburner.model.errors import BackburnerError, UsageError
from backburner.model.limits import SIGNAL_LEASE_S
from backburner.model.redaction import redact_text
from backburner.model.signals import Signal
from backburner.store.protocol import Scope, Store
from backburner.tools.arguments import checked
from backburner.tools.seen import Answer, Form, Offer, by_name

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
        offer = self._offers.get(name)
        if offer is None:
            known = ", ".join(self._offers)
            return Answer(f"there is no tool {name!r:.80} (known are {known})", is_error=True)
        await self._delivered()
        try:
            answer = await offer.handler(checked(offer, {} if arguments is None else arguments))
        except BackburnerError as error:
            text = redact_text(str(error))
            answer = Answer(text, {"error": {"code": error.code, "message": text}}, is_error=True)
        return await self._with_signals(answer)

    async def close(self) -> None:
        """The client is gone: what it was shown and did not come back for goes to the next."""
        await self._store.release_signals(self._consumer)

    async def _delivered(self) -> None:
        if self._shown:
            with contextlib.suppress(BackburnerError):  # it is told again, under the same key
                await self._store.acknowledge(self._shown, self._scope)
                self._shown = []

    async def riding_along(self) -> list[Signal]:
        """What goes with an answer that this client gets from elsewhere, as with those of `call`"""
        await self._delivered()
        return await self._taken()

    async def _taken(self) -> list[Signal]:
        signals = await self._pending() if self._takes else []
        self._shown += [signal.key for signal in signals]
        return signals

    async def _with_signals(self, answer: Answer) -> Answer:
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


def _document(signal: Signal) -> dict[str, Any]:
    return {
        "key": signal.key,
        "task": signal.task,
        "kind": signal.kind.value,
        "text": signal.text,
    }
