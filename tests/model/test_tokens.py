"""Tokens: 256 random bits, of which the record knows a hash."""

from backburner.model.policy import Role
from backburner.model.tokens import NOBODY, Token, digest_of, name_in, new_token


def made(expires_at: int | None = None) -> tuple[Token, str]:
    return new_token(
        "ada", Role.USER, session=None, label="laptop", now=1000, expires_at=expires_at
    )


def test_a_token_is_its_name_and_256_bits() -> None:
    token, text = made()
    assert name_in(text) == token.id
    assert len(text) == len("bb__") + 16 + 43
    assert token.fits(text)
    assert made()[1] != text


def test_nothing_of_it_is_shown_again() -> None:
    token, text = made()
    secret = text.rpartition("_")[2]
    assert token.digest == digest_of(text)
    for shown in (repr(token), str(token.document())):
        assert secret not in shown
        assert token.digest not in shown


def test_another_text_does_not_fit() -> None:
    token, text = made()
    for wrong in ("", text[:-1], text + "x", text.upper(), text.replace("bb_", "", 1)):
        assert not token.fits(wrong)
    assert not NOBODY.fits(text)


def test_what_is_no_token_has_no_name() -> None:
    _, text = made()
    for wrong in ("", "bb_", text + "x", " " + text, text.replace("_", "-"), "bb_" + "é" * 60):
        assert name_in(wrong) is None


def test_it_opens_until_it_ends_or_is_taken_back() -> None:
    from dataclasses import replace

    token, _ = made(expires_at=2000)
    assert token.holds(1999)
    assert not token.holds(2000)
    assert not replace(token, revoked_at=1500).holds(1600)
    assert made()[0].holds(10**18)
