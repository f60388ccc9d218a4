"""A10: a short message about background work is understood without a model, and no other is."""

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import backburner
from backburner.intents import Intent, classify
from backburner.tools.intents import grammar
from backburner.tools.intents.words import MOST_CHARACTERS, MOST_WORDS
from tests.tools.intents.table import PHRASES

UNDERSTOOD = [(phrase, intent) for phrase, intent in PHRASES if intent is not None]
VOCABULARY = sorted(
    {word for rule in grammar.RULES.values() for word in re.findall(r"[a-z']+", " ".join(rule))}
)


@pytest.mark.parametrize("intent", [*Intent, None])
def test_a10_the_table_of_phrases(intent: Intent | None) -> None:
    wanted = [phrase for phrase, meaning in PHRASES if meaning is intent]
    assert {phrase: classify(phrase) for phrase in wanted} == dict.fromkeys(wanted, intent)


def test_a10_the_table_is_large_and_says_nothing_twice() -> None:
    phrases = [phrase for phrase, _ in PHRASES]
    assert len(phrases) == len(set(phrases)) >= 150
    assert sum(intent is None for _, intent in PHRASES) >= 150
    assert {intent for _, intent in PHRASES} == {*Intent, None}


def test_a10_the_answer_is_one_of_four_words() -> None:
    assert [*Intent] == ["list", "output", "stop", "status"]
    assert f"{backburner.intents.classify('stop the job')}" == "stop"


understood = st.sampled_from(UNDERSTOOD)


@given(understood, st.sampled_from([str.upper, str.title, str.lower, str.swapcase]))
def test_a10_case_makes_no_difference(
    case: tuple[str, Intent], spelling: Callable[[str], str]
) -> None:
    phrase, intent = case
    if phrase.isascii() and "'" not in phrase:
        assert classify(spelling(phrase)) == intent


@given(understood, st.text(" \t\r\n\u00a0", min_size=1, max_size=3))
def test_a10_white_space_makes_no_difference(case: tuple[str, Intent], blank: str) -> None:
    phrase, intent = case
    assert classify(blank + phrase.replace(" ", blank) + blank) == intent


@given(understood)
def test_a10_courtesy_makes_no_difference(case: tuple[str, Intent]) -> None:
    phrase, intent = case
    if len(phrase.split()) < MOST_WORDS - 2:
        assert classify(f"Thanks! {phrase}") == intent
        assert classify(f"ok, please {phrase}") == intent


@given(
    understood,
    st.sampled_from(
        [
            "and fix the bug",
            "then run the tests",
            "if it fails",
            "tomorrow",
            "for my resume",
            "$HOME",
        ]
    ),
)
def test_a10_whoever_asks_for_more_is_left_to_a_model(case: tuple[str, Intent], more: str) -> None:
    assert classify(f"{case[0].rstrip('.!?')} {more}") is None


@given(understood, st.sampled_from(["don't", "do not", "never", "why did you", "how do I"]))
def test_a10_a_negation_or_another_question_is_not_understood(
    case: tuple[str, Intent], before: str
) -> None:
    assert classify(f"{before} {case[0]}") is None


@given(st.text())
def test_a10_no_text_makes_it_fail(text: str) -> None:
    assert classify(text) in {*Intent, None}


@given(st.lists(st.sampled_from([*VOCABULARY, "bg_7qk2", "3", '"', "'", "`", "?", ",", "job's"])))
def test_a10_no_heap_of_its_own_words_makes_it_fail(words: list[str]) -> None:
    assert classify(" ".join(words)) in {*Intent, None}


@given(st.text(alphabet="\ud800\udfff\u200d\ufeff\0'\"`?.,@#%-_ bg"))
def test_a10_broken_text_makes_it_fail_neither(text: str) -> None:
    assert classify(text) in {*Intent, None}
    assert classify(f"stop the job {text}") in {Intent.STOP, Intent.STATUS, Intent.OUTPUT, None}


@pytest.mark.parametrize(
    "text",
    [
        "please " * 1_000_000,
        '"' * 10_000_000,
        "a" * 10_000_000,
        " " * 10_000_000,
        "?," * 5_000_000,
        "the running " * 24,
        "," * MOST_CHARACTERS,
        '"a' * (MOST_CHARACTERS // 2),
        "'" * MOST_CHARACTERS,
        "a.b'" * (MOST_CHARACTERS // 4),
    ],
    ids=lambda text: text[:8],
)
def test_a10_what_is_long_is_not_even_looked_at(text: str) -> None:
    assert classify(text) is None


def test_a10_the_bounds_are_what_the_page_says() -> None:
    most = "please " * (MOST_WORDS - 3) + "stop the job"
    assert len(most.split()) == MOST_WORDS
    assert classify(most) is Intent.STOP
    assert classify(f"please {most}") is None


def test_a10_every_rule_is_used_and_known() -> None:
    parts = {
        option
        for phrases in grammar.RULES.values()
        for phrase in phrases
        for part in phrase.split()
        for option in part.rstrip("?*").split("|")
    }
    named = {part for part in parts if part.isupper()}
    known = {*grammar.RULES, *grammar.TESTS}
    assert named <= known
    assert known - named == {"SAYS_STOP", "SAYS_OUTPUT", "SAYS_LIST", "SAYS_STATUS"}
    assert known >= grammar.KEPT


def test_a10_it_loads_nothing_heavy() -> None:
    program = (
        "import sys, backburner; assert backburner.intents.classify('stop the job') == 'stop';"
        "print(*sorted(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not set(run.stdout.split()) & {"asyncio", "apsw", "pydantic", "typer", "re2", "psutil"}
