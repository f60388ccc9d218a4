"""What became of one delivery, and what there is to deliver."""

import json
from typing import Any

from backburner.model.document import signal_document
from backburner.model.redaction import redact_text
from backburner.model.signals import Signal
from backburner.model.values import value

_REASON_MAX_CHARS = 300
_BODY_MAX_BYTES = 256 * 1024
"""Receivers refuse more, and who wants a large result reads it from its file."""


@value
class Delivered:
    """The receiver has it."""


@value
class Failed:
    """It is to be tried again."""

    reason: str
    wait_s: float | None = None
    """What the receiver asked for."""


@value
class Gone:
    """The receiver wants nothing more, ever."""

    reason: str


Outcome = Delivered | Failed | Gone


@value
class Letter:
    """A signal with what its receiver may want to know of the task."""

    signal: Signal
    task: dict[str, Any] | None

    def signal_json(self) -> bytes:
        """The signal alone."""
        return _dump(signal_document(self.signal))

    def data(self) -> dict[str, Any]:
        """Signal and task, without what is too large for a message."""
        signal: dict[str, Any] = signal_document(self.signal)
        task = self.task
        if len(_dump([signal, task])) > _BODY_MAX_BYTES and task is not None:
            task = {**task, "result": None, "left_out": ["result"]}
        if len(_dump([signal, task])) > _BODY_MAX_BYTES:
            signal = {**signal, "data": {}, "text": self.signal.text[:1000], "left_out": ["data"]}
            task = None
        return {"signal": signal, "task": task}


def failed(reason: str, wait_s: float | None = None) -> Failed:
    """A failure whose reason may come from anybody: one line, cut, secrets hidden."""
    line = " ".join(redact_text(reason).split())
    line = "".join(character if character.isprintable() else "\ufffd" for character in line)
    cut = line if len(line) <= _REASON_MAX_CHARS else line[: _REASON_MAX_CHARS - 1] + "…"
    return Failed(cut, wait_s)


def _dump(value: Any) -> bytes:
    # Lone surrogates, from names that are no UTF-8, can only be said in ASCII.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
