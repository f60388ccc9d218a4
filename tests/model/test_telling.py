"""A5: the text of a result says whether it finished, failed, was killed, timed out or died."""

import pytest

from backburner.model.clock import SECOND
from backburner.model.ending import ENDINGS, Ending
from backburner.model.signals import (
    END_SIGNALS,
    Signal,
    SignalKind,
    SignalState,
    end_key,
)
from backburner.model.states import ErrorKind, State
from backburner.model.telling import end_text, how_it_ended

WORDS = ("finished", "failed", "stopped", "timed out", "killed", "died")

SENTENCES = [
    (Ending.exited(0), "finished after 12s"),
    (Ending.succeeded(), "finished after 12s"),
    (Ending.exited(3), "failed: exit code 3 after 12s"),
    (Ending.failed(ErrorKind.ERROR, "ValueError: no"), "failed: ValueError: no after 12s"),
    (Ending.canceled(), "was stopped after 12s"),
    (Ending.failed(ErrorKind.TIMEOUT, "past 12s"), "timed out: past 12s after 12s"),
    (Ending.failed(ErrorKind.KILLED, "SIGKILL"), "was killed: SIGKILL after 12s"),
    (Ending.failed(ErrorKind.ORPHANED, "reboot"), "died: reboot after 12s"),
    (Ending.failed(ErrorKind.SPAWN, "no such folder"), "failed to start: no such folder"),
]


@pytest.mark.parametrize(("ending", "sentence"), SENTENCES)
def test_a5_the_sentence_for_every_ending(ending: Ending, sentence: str) -> None:
    assert end_text("tests", "bg_1", ending, 12 * SECOND) == f"tests (bg_1) {sentence}"


@pytest.mark.parametrize(("ending", "sentence"), SENTENCES)
def test_a5_every_sentence_says_which_of_the_six_it_was(ending: Ending, sentence: str) -> None:
    said = how_it_ended(ending)
    assert len([word for word in WORDS if word in said]) == 1


def test_a5_no_ending_is_without_a_sentence() -> None:
    told = {(ending.state, ending.error.kind if ending.error else None) for ending, _ in SENTENCES}
    assert told == set(ENDINGS)


def test_x1_every_end_is_told_as_its_own_kind() -> None:
    assert END_SIGNALS == {
        State.SUCCEEDED: SignalKind.COMPLETED,
        State.FAILED: SignalKind.FAILED,
        State.CANCELED: SignalKind.CANCELED,
    }


def test_x1_the_key_of_an_end_depends_on_the_task_alone() -> None:
    assert end_key("bg_1") == end_key("bg_1") == "bg_1:end"
    assert end_key("bg_1") != end_key("bg_2")


def test_x1_the_words_of_signals_are_those_of_the_contract() -> None:
    assert [kind.value for kind in SignalKind] == [
        *("completed", "failed", "canceled", "input_required", "ready", "match", "silent"),
        "message",  # beside those of the contract
    ]
    assert [state.value for state in SignalState] == [
        *("pending", "claimed", "delivered", "failed", "dropped")
    ]


def test_a_signal_has_a_name_for_the_outside() -> None:
    signal = Signal(
        7, "bg_1:end", "bg_1", "ada", "chat", SignalKind.COMPLETED, "done", {},
        SignalState.PENDING, None, "inbox", 0, 0, None,
    )  # fmt: skip
    assert signal.id == "sg_7"
