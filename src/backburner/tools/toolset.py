"""A set of tools for one model: it is called by name, and answers also with what the session has
to be told.

Pending signals ride along with any answer. They are this client's from then on and count as
delivered when it calls again, because then it has read them (X1); until that they are repeated
under the same key, to it or, after a lease, to somebody else. A call that was given up has told
nobody anything: what it took goes back at once.
"""

import asyncio
import contextlib
import itertools
import os
from collections.abc import Sequence
from typing import Any, cast

from backburner.model import clock
from backburner.model.errors import BackburnerError, InternalError, StoreError, UsageError
from backburner.model.limits import SIGNAL_LEASE_S
from backburner.model.redaction import redact_text
from backburner.model.sayable import sayable
from backburner.model.signals import Signal, end_key
from backburner.store.protocol import Scope, Store
from backburner.tools.arguments import checked, shown
from backburner.tools.seen import Answer, Form, Offer, by_name
from backburner.work.tools.execution import failure_of

_numbers = itertools.count(1)

_AT_ONCE = 10
_TOLD_CHARS = 4_000
"""Signals that ride along with one answer, and their characters; the rest comes with the next."""


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
        # In a container a process has the pid of the one before it.
        self._consumer = f"tools.{os.getpid()}.{next(_numbers)} {clock.boot_now()}"
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
            text = f"there is no tool {shown(name)} (known are {known})"
            return _sayable(Answer(text, is_error=True))
        answer: Answer | None = None
        try:
            await self.heard()
            answer = await self._answer(offer, arguments)
            return _sayable(await self.accompany(answer))
        except Exception as error:  # noqa: BLE001 - the model goes on whatever we did not foresee
            told = _unforeseen(error, offer.name, arguments)
            return _sayable(answer or told)  # what was done is done

    async def _answer(self, offer: Offer, arguments: Any) -> Answer:
        try:
            return await offer.handler(checked(offer, {} if arguments is None else arguments))
        except (StoreError, InternalError) as error:  # ours to mend, and it names our files (E1)
            return _unforeseen(error, offer.name, arguments)
        except BackburnerError as error:
            return _failed(error.code, redact_text(str(error)))

    async def close(self) -> None:
        """The client is gone: what it was shown and did not come back for goes to the next."""
        self._shown.clear()
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
        if not self._takes:
            return []
        claiming = asyncio.ensure_future(
            self._store.claim_signals(
                self._scope, consumer=self._consumer, limit=_AT_ONCE, lease_s=SIGNAL_LEASE_S
            )
        )
        try:
            claimed = await asyncio.shield(claiming)
            told = claimed[: _fitting(claimed)]
            await self._give_back(claimed[len(told) :])
        except asyncio.CancelledError:
            with contextlib.suppress(BackburnerError):
                await self._give_back(await claiming)
            raise
        except BackburnerError:  # a full disk: what was called for is answered all the same
            return []
        self._shown += [signal.key for signal in told]
        return told

    async def _give_back(self, signals: list[Signal]) -> None:
        if signals:
            keys = [signal.key for signal in signals]
            await self._store.postpone_signals(keys, 0, consumer=self._consumer)

    async def accompany(self, answer: Answer) -> Answer:
        """The answer, and what rides along; for answers to calls that this set has not made."""
        signals = await self._taken()
        if not signals:
            return answer
        lines = (line_of(each) for each in signals if not _says(answer, each))
        parts = (answer.text, "\n".join(lines))
        data = {**answer.data, "signals": [_document(signal) for signal in signals]}
        return Answer("\n\n".join(part for part in parts if part), data, answer.is_error)


def _sayable(answer: Answer) -> Answer:
    """As it can be sent to a model."""
    return Answer(sayable(answer.text), sayable(answer.data), answer.is_error)


def line_of(signal: Signal) -> str:
    """As a model is told it: marked, because it may repeat what a job has printed."""
    return f"[{signal.kind}] {signal.text}"


def _fitting(signals: list[Signal]) -> int:
    """How many go with one answer; one at least, however long it is."""
    sizes = itertools.accumulate(len(signal.text) for signal in signals)
    return max(1, sum(size <= _TOLD_CHARS for size in sizes))


def _says(answer: Answer, signal: Signal) -> bool:
    """Whether the answer itself says how that task has ended: told once is enough."""
    ended = answer.data.get("id") == signal.task and answer.data.get("finished_at") is not None
    return ended and signal.key == end_key(signal.task)


def _failed(code: str, text: str) -> Answer:
    return Answer(text, {"error": {"code": code, "message": text}}, is_error=True)


def _unforeseen(error: Exception, name: str, arguments: Any) -> Answer:
    """It is logged whole; the model gets a reference."""
    given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    failure = failure_of(error, name=name, arguments=given, ours=True)
    code = error.code if isinstance(error, BackburnerError) else InternalError.code
    return _failed(code, failure.message)


def _document(signal: Signal) -> dict[str, Any]:
    return {
        "key": signal.key,
        "task": signal.task,
        "kind": signal.kind.value,
        "text": signal.text,
    }
