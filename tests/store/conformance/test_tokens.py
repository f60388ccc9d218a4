"""Who may call: tokens are kept, used, taken back and forgotten."""

from dataclasses import replace

from backburner.model.policy import Role
from backburner.model.tokens import Token, new_token
from backburner.store.protocol import Store
from tests.store.conformance.conftest import OpenAnother


def token(*, now: int = 1000, expires_at: int | None = None, session: str | None = None) -> Token:
    made, _ = new_token(
        "ada", Role.VIEWER, session=session, label="lap\0top ü", now=now, expires_at=expires_at
    )
    return made


async def test_a_token_comes_back_as_it_was(store: Store, open_another: OpenAnother) -> None:
    first, second = token(session="chat"), token(expires_at=2000)
    await store.add_token(first)
    await store.add_token(second)
    other = await open_another()
    assert await other.token(first.id) == first
    assert await other.tokens() == [first, second]
    assert await other.token("none") is None


async def test_the_last_use_never_goes_back(store: Store) -> None:
    made = token()
    await store.add_token(made)
    for at, known in ((5000, 5000), (4000, 5000), (6000, 6000)):
        await store.token_used(made.id, at)
        found = await store.token(made.id)
        assert found is not None
        assert found.last_used_at == known
    await store.token_used("none", 1)


async def test_a_token_is_taken_back_once(store: Store) -> None:
    made = token()
    await store.add_token(made)
    revoked = await store.revoke_token(made.id)
    assert revoked is not None
    assert revoked.revoked_at is not None
    assert await store.revoke_token(made.id) is None
    assert await store.revoke_token("none") is None
    assert await store.token(made.id) == revoked


async def test_what_opens_nothing_is_forgotten_after_a_while(store: Store) -> None:
    stays, old, later, revoked = token(), token(expires_at=10), token(expires_at=30), token()
    for made in (stays, old, later, revoked):
        await store.add_token(made)
    assert await store.revoke_token(revoked.id) is not None
    assert await store.forget_tokens(20) == 1
    assert await store.tokens() == [stays, later, await store.token(revoked.id)]
    assert await store.forget_tokens(2**62) == 2
    assert await store.tokens() == [stays]


async def test_what_was_traded_for_a_token_is_taken_back_with_it(store: Store) -> None:
    first = token()
    child, sibling, late = (replace(token(), parent=first.id) for _ in range(3))
    for made in (first, child, sibling):
        assert await store.add_token(made)
    assert await store.token(child.id) == child
    revoked = await store.revoke_token(child.id)
    assert revoked is not None
    assert revoked.id == child.id
    assert await store.token(first.id) == first
    revoked = await store.revoke_token(first.id)
    assert revoked is not None
    assert revoked.id == first.id
    with_it = await store.token(sibling.id)
    assert with_it is not None
    assert with_it.revoked_at is not None
    assert not await store.add_token(late), "it is too late for a trade"
    assert await store.token(late.id) is None
