"""D9: what is sealed is opened with the same key, for what it belongs to, and nowhere else."""

import pytest

from backburner.model.errors import UsageError
from backburner.work.sealing import MARK, VARIABLE, check_secret, seal, unseal

KEY, OTHER = "k" * 32, "o" * 32


def sealed(text: str, subject: str = "bg_1") -> str:
    """As the record keeps it."""
    given = seal(text, subject)
    assert given.startswith(MARK)
    return given.removeprefix(MARK)


def test_without_a_key_it_is_kept_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert sealed("hunter2") == "plain:hunter2"
    assert unseal(sealed("hunter2"), "bg_1") == "hunter2"


def test_with_a_key_nothing_of_it_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    first, second = sealed("hunter2"), sealed("hunter2")
    assert "hunter2" not in first
    assert first != second, "the same text twice cannot be told"
    assert unseal(first, "bg_1") == "hunter2"
    with pytest.raises(ValueError, match="another BACKBURNER_SECRET"):
        unseal(first, "bg_2")
    with pytest.raises(ValueError, match="another BACKBURNER_SECRET"):
        unseal(first[:-8] + "AAAAAAA=", "bg_1")
    with pytest.raises(ValueError, match="broken"):
        unseal("sealed:not base64!", "bg_1")


def test_a_key_is_replaced_without_losing_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    old = sealed("hunter2")
    monkeypatch.setenv(VARIABLE, f"{OTHER} {KEY}")
    assert unseal(old, "bg_1") == "hunter2"
    new = sealed("hunter2")
    monkeypatch.setenv(VARIABLE, OTHER)
    assert unseal(new, "bg_1") == "hunter2"
    with pytest.raises(ValueError, match="another BACKBURNER_SECRET"):
        unseal(old, "bg_1")
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(ValueError, match="is not set on this machine"):
        unseal(new, "bg_1")


def test_a_key_that_somebody_thought_up_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "secret")
    with pytest.raises(UsageError, match="shorter than 16"):
        seal("hunter2", "bg_1")


@pytest.mark.parametrize("wrong", [" ", "\t\n", "short", f"{KEY} short"])
def test_d9_a_key_that_is_none_is_refused_and_not_taken_for_unset(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv(VARIABLE, wrong)
    with pytest.raises(UsageError, match=VARIABLE):
        check_secret()
    with pytest.raises(UsageError, match=VARIABLE):
        seal("hunter2", "bg_1")


@pytest.mark.parametrize("right", ["", KEY, f"{KEY} {OTHER}"])
def test_any_other_key_is_taken(monkeypatch: pytest.MonkeyPatch, right: str) -> None:
    monkeypatch.setenv(VARIABLE, right)
    check_secret()
