"""Making, checking and taking back tokens; the one of the local user lies in a file."""

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.model.errors import NotAllowed, NotFound, UsageError
from backburner.runtime.tokens import TokenService


@pytest.fixture
async def tokens(home: Path) -> AsyncIterator[TokenService]:
    async with Backburner.open(home) as backburner:
        yield TokenService(backburner.store, backburner.home)


async def test_only_the_very_text_opens(tokens: TokenService) -> None:
    made, text = await tokens.create("laptop", owner="ada", role="viewer", session="chat")
    found = await tokens.check(text)
    assert (found.id, found.owner, found.session) == (made.id, "ada", "chat")
    other = "A" if text[-1] != "A" else "E"
    for wrong in ("", text[:-1] + other, text + " ", "bb_" + "0" * 16 + "_" + "A" * 43, "x" * 9999):
        with pytest.raises(NotAllowed, match="opens nothing"):
            await tokens.check(wrong)


async def test_the_last_use_is_noted_seldom(tokens: TokenService) -> None:
    made, text = await tokens.create("laptop")
    await tokens.check(text)
    (first,) = await tokens.listed()
    assert first.last_used_at is not None
    await tokens.check(text)
    (again,) = await tokens.listed()
    assert (again.id, again.last_used_at) == (made.id, first.last_used_at)


async def test_one_that_was_taken_back_opens_nothing_at_once(tokens: TokenService) -> None:
    made, text = await tokens.create("laptop")
    await tokens.create("other")
    assert (await tokens.revoke(made.id[:10])).revoked_at is not None
    with pytest.raises(NotAllowed):
        await tokens.check(text)
    assert not await tokens.still_holds(made.id)
    assert (await tokens.revoke(made.id)).revoked_at is not None, "it is so already"
    with pytest.raises(NotFound):
        await tokens.revoke("none")
    with pytest.raises(NotFound):
        await tokens.revoke("")


async def test_what_cannot_be_a_token_is_refused(tokens: TokenService) -> None:
    wrong: list[dict[str, object]] = [
        {"role": "king"},
        {"owner": ""},
        {"session": ""},
        {"lasts_s": 0},
        {"lasts_s": float("nan")},
        {"owner": "a\0b"},
    ]
    for options in wrong:
        with pytest.raises(UsageError):
            await tokens.create("x", **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        await tokens.create("x" * 101)


async def test_the_file_of_the_local_user(home: Path, tokens: TokenService) -> None:
    text = await tokens.local()
    path = home / "token"
    assert path.read_text().strip() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await tokens.local() == text
    token = await tokens.check(text)
    assert (token.owner, token.role) == ("local", "admin")
    await tokens.revoke(token.id)
    assert await tokens.local() != text, "one that opens nothing is replaced"
    path.chmod(0o644)
    text = await tokens.local()
    assert path.read_text().strip() == text, "and one that others could read"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    os.unlink(path)
    os.symlink("/etc/hostname", path)
    text = await tokens.local()
    assert not path.is_symlink()
    assert path.read_text().strip() == text
