"""Letters to deliver."""

from typing import Any

from backburner.model.signals import Signal, SignalKind, SignalState
from backburner.work.channels.outcome import Letter


def a_letter(
    text: str = "tests (bg_1) finished after 2s",
    *,
    key: str = "bg_1:end@hook",
    tries: int = 1,
    data: dict[str, Any] | None = None,
    task: dict[str, Any] | None = None,
    kind: SignalKind = SignalKind.COMPLETED,
) -> Letter:
    """A signal that is to be delivered."""
    signal = Signal(
        seq=7,
        key=key,
        task="bg_1",
        owner="ada",
        session="chat",
        kind=kind,
        text=text,
        data={"exit_code": 0} if data is None else data,
        state=SignalState.CLAIMED,
        reason=None,
        channel="hook",
        tries=tries,
        created_at=1_800_000_000_000_000,
        delivered_at=None,
    )
    return Letter(signal, {"id": "bg_1", "state": "succeeded"} if task is None else task)
