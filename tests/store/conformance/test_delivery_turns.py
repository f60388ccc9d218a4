"""X1, X10: nobody waits for the receivers of another owner."""

from backburner.model.channels import Channel, ChannelKind
from backburner.store.protocol import Scope, Store
from tests.store.conformance.making import ended


async def letters(store: Store, owner: str, channels: int) -> None:
    """One to be delivered through each of so many channels."""
    for n in range(channels):
        await store.add_channel(Channel(f"hook{n}", owner, None, ChannelKind.COMMAND, "cat"))
    await ended(store, scope=Scope(owner, "chat"))


async def claimed(store: Store, **terms: object) -> list[str]:
    found = await store.claim_deliveries(
        consumer="one",
        limit=100,
        lease_s=60,
        **terms,  # type: ignore[arg-type]
    )
    return sorted(signal.owner for signal in found)


async def test_x10_of_each_owner_at_most_so_many_are_claimed(store: Store) -> None:
    await letters(store, "ada", 5)
    await letters(store, "bob", 1)
    assert await claimed(store, each=2) == ["ada", "ada", "bob"]
    assert await claimed(store, each=2) == ["ada", "ada"]


async def test_x10_an_owner_that_has_enough_is_passed_over(store: Store) -> None:
    await letters(store, "ada", 2)
    assert await store.next_delivery(passing_over=["ada"]) is None
    assert await claimed(store, passing_over=["ada"]) == []
    await letters(store, "bob", 1)
    assert await store.next_delivery(passing_over=["ada"]) == 0
    assert await claimed(store, passing_over=["ada"]) == ["bob"]
    assert await store.next_delivery(passing_over=["ada", "bob"]) is None
    assert await claimed(store) == ["ada", "ada"]
