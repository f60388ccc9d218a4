"""Channels for the tests, and what is pushed through them."""

from backburner.model.channels import Channel, ChannelKind
from backburner.model.signals import INBOX, Signal
from backburner.model.task import Task
from backburner.store.protocol import Scope, Store
from tests.store.conformance.making import EVERY_SESSION_OF_ADA


def channel(name: str = "hook", **options: object) -> Channel:
    facts: dict[str, object] = {
        "owner": "ada",
        "session": "chat",
        "kind": ChannelKind.COMMAND,
        "target": "cat",
    }
    return Channel(name, **(facts | options))  # type: ignore[arg-type]


async def claim(
    store: Store,
    consumer: str = "one",
    *,
    limit: int = 100,
    lease_s: float = 60,
) -> list[Signal]:
    return await store.claim_deliveries(consumer=consumer, limit=limit, lease_s=lease_s)


async def deliver(store: Store, signals: list[Signal], consumer: str = "one") -> None:
    """What it holds has arrived."""
    for signal in signals:
        scope = Scope(signal.owner, signal.session)
        assert await store.acknowledge([signal.key], scope, consumer=consumer) == 1


async def pushed(store: Store, task: Task, scope: Scope = EVERY_SESSION_OF_ADA) -> list[Signal]:
    """The signals of a task beside that in the inbox."""
    found = await store.signals(scope, task=task.id)
    return [signal for signal in found if signal.channel != INBOX]


async def the_push(store: Store, task: Task) -> Signal:
    (signal,) = await pushed(store, task)
    return signal


def keys(signals: list[Signal]) -> list[str]:
    return [signal.key for signal in signals]
