"""D9: what stands under a secret key is not written anywhere; a line of a log is cut."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model.errors import InvalidArguments
from backburner.model.redaction import (
    HIDDEN,
    for_log,
    is_secret,
    redact,
    redact_arguments,
    redact_text,
    secrets_in,
    without,
)

NAMES = (
    *("api_key", "apikey", "authorization", "auth"),
    *("credentials", "password", "secret", "token"),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "dress",
    ["{}", "my_{}", "x-{}", "db{}", "X_{}"],
)
def test_d9_a_key_that_is_or_ends_in_a_secret_name_is_secret(name: str, dress: str) -> None:
    key = dress.format(name)
    for spelled in (key, key.upper(), key.title(), key.replace("_", "-"), key.replace("_", "")):
        assert is_secret(spelled), spelled


@pytest.mark.parametrize(
    "key",
    ["X-Api-Key", "apiKey", "OPENAI_API_KEY", "Proxy-Authorization", "oauth", "accessToken"],
)
def test_d9_keys_as_they_occur_are_secret(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize(
    "key",
    ["", "url", "author", "authors", "tokens_used", "token_count", "passwords_file", "keys", "api"],
)
def test_d9_a_key_that_only_begins_like_one_is_not_secret(key: str) -> None:
    assert not is_secret(key)


def test_d9_a_secret_is_hidden_at_any_depth_and_the_rest_is_left_alone() -> None:
    arguments = {
        "url": "https://example.org",
        "headers": {"Authorization": "Bearer s3cret", "Accept": "*/*"},
        "accounts": [{"name": "ada", "password": "s3cret"}, [{"token": ["s3cret"]}]],
        "pair": ({"secret": {"deep": "s3cret"}}, 1),
        "credentials": {"user": "ada", "pass": "s3cret"},
        "password": None,
        "n": 3,
        4: "not a name",
    }
    assert redact(arguments) == {
        "url": "https://example.org",
        "headers": {"Authorization": HIDDEN, "Accept": "*/*"},
        "accounts": [{"name": "ada", "password": HIDDEN}, [{"token": HIDDEN}]],
        "pair": [{"secret": HIDDEN}, 1],
        "credentials": HIDDEN,
        "password": HIDDEN,
        "n": 3,
        4: "not a name",
    }


def test_d9_the_caller_keeps_what_it_gave() -> None:
    arguments = {"a": {"token": "s3cret"}, "b": [{"token": "s3cret"}]}
    redact(arguments)
    assert arguments == {"a": {"token": "s3cret"}, "b": [{"token": "s3cret"}]}


SECRET = "s3cret-"  # begins every hidden value below, and occurs nowhere else


def secret_key(before: str, name: str, dashed: bool, upper: bool) -> str:
    key = before + (name.replace("_", "-") if dashed else name)
    return key.upper() if upper else key


def merged(plain: dict[str, Any], hidden: dict[str, Any]) -> dict[str, Any]:
    return {**plain, **hidden}


def dictionaries_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some keys that are plain, and some that are secret."""
    return st.builds(
        merged,
        st.dictionaries(plain_keys, inner, max_size=3),
        st.dictionaries(secret_keys, secrets, max_size=2),
    )


plain_keys = st.text(max_size=8).filter(lambda key: not is_secret(key) and SECRET not in key)
secret_keys = st.builds(
    secret_key,
    st.sampled_from(["", "x_", "my-", "Db", "é"]),
    st.sampled_from(NAMES),
    st.booleans(),
    st.booleans(),
)
secrets: st.SearchStrategy[Any] = st.recursive(
    st.text(max_size=300).map(lambda text: SECRET + text),
    lambda inner: st.lists(inner, min_size=1, max_size=2) | st.dictionaries(plain_keys, inner),
    max_leaves=3,
)
documents: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | dictionaries_of(inner),
    max_leaves=12,
)
arguments = dictionaries_of(documents)


@given(arguments)
def test_d9_no_secret_value_survives(given_arguments: dict[str, Any]) -> None:
    assert SECRET not in json.dumps(redact(given_arguments), ensure_ascii=False)
    assert SECRET not in for_log(given_arguments)


@given(arguments)
def test_d9_redaction_keeps_every_key_and_is_stable(given_arguments: dict[str, Any]) -> None:
    once = redact(given_arguments)
    assert set(once) == set(given_arguments)
    assert redact(once) == once


@given(arguments)
def test_d9_a_log_line_is_one_line_of_at_most_500_characters(
    given_arguments: dict[str, Any],
) -> None:
    line = for_log(given_arguments)
    assert len(line) <= 500
    assert len(line.splitlines()) <= 1


def test_d9_a_value_is_cut_at_200_characters_and_a_line_at_500() -> None:
    assert for_log({"a": "x" * 200, "n": 1}) == f"a={'x' * 200} n=1"
    assert for_log({"a": "x" * 201, "n": 1}) == f"a={'x' * 199}… n=1"
    long = for_log({f"k{number}": "x" * 150 for number in range(5)})
    assert len(long) == 500
    assert long.endswith("…")


def test_d9_the_record_keeps_what_is_not_secret_whole() -> None:
    assert redact({"text": "x" * 5000}) == {"text": "x" * 5000}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("curl: token=abc&x=1", "curl: token=[redacted]&x=1"),
        ("API_KEY: 'a b c' and more", "API_KEY: [redacted] and more"),
        ('{"password": "a b"}', '{"password": [redacted]}'),
        ("Authorization: Bearer abc.def done", "Authorization: [redacted] done"),
        ("x-auth=1, y=2", "x-auth=[redacted], y=2"),
        (
            "cannot reach https://ada:pw@example.com/x",
            "cannot reach https://[redacted]@example.com/x",
        ),
        ("no such token", "no such token"),
        ("the secretary: Bob", "the secretary: Bob"),
        ("mail to ada@example.com", "mail to ada@example.com"),
    ],
)
def test_d9_what_a_program_says_is_shown_without_its_secrets(text: str, shown: str) -> None:
    assert redact_text(text) == shown


def test_d9_hostile_text_is_redacted_in_time() -> None:
    for text in ("auth" * 2000, "a-" * 4000, "://" * 3000, "token=" * 1500):
        began = time.process_time()
        redact_text(text)
        assert time.process_time() - began < 5


def has_secret_key(value: Any) -> bool:
    if isinstance(value, dict):
        return any(is_secret(key) or has_secret_key(inner) for key, inner in items_of(value))
    return isinstance(value, list | tuple) and any(map(has_secret_key, elements_of(value)))


def items_of(value: Any) -> list[tuple[str, Any]]:
    return [*value.items()]


def elements_of(value: Any) -> list[Any]:
    return [*value]


@given(arguments)
def test_d9_a_call_says_whether_it_was_redacted(given_arguments: dict[str, Any]) -> None:
    redacted, was_redacted = redact_arguments(given_arguments)
    assert redacted == redact(given_arguments)
    assert was_redacted == has_secret_key(given_arguments)
    assert SECRET not in json.dumps(redacted, ensure_ascii=False)


@given(arguments, st.text(max_size=20))
def test_d9_a_secret_is_hidden_wherever_a_text_repeats_it(
    given_arguments: dict[str, Any], around: str
) -> None:
    hidden = secrets_in(given_arguments)
    said = around.join(sorted(hidden))
    assert SECRET not in without(said, hidden)
    assert without(around, ()) == around


def test_d9_what_is_short_or_a_flag_is_no_secret_worth_hiding() -> None:
    assert secrets_in({"token": "abc", "auth": True, "password": None}) == frozenset()
    assert secrets_in({"token": ["abcd", {"x": 12345}], "n": 99999}) == {"abcd", "12345"}


def test_d9_arguments_without_end_are_refused() -> None:
    deep: dict[str, Any] = {}
    deep["again"] = deep
    with pytest.raises(InvalidArguments, match="deep"):
        redact_arguments(deep)
