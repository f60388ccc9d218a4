"""E10: six states, one table of changes, and a terminal state that is final."""

from hypothesis import given
from hypothesis import strategies as st

from backburner.model.ending import ENDINGS
from backburner.model.signals import END_SIGNALS
from backburner.model.states import ACTIVE, TERMINAL, TRANSITIONS, ErrorKind, Kind, State, sources

states = st.sampled_from(State)


def test_e10_the_states_and_error_kinds_are_those_of_the_contract() -> None:
    assert [state.value for state in State] == [
        *("queued", "running", "input_required", "succeeded", "failed", "canceled")
    ]
    assert {kind.value for kind in ErrorKind} == {
        *("error", "exit", "timeout", "orphaned", "killed", "spawn")
    }
    assert {kind.value for kind in Kind} == {"shell", "python", "tool", "agent"}


def test_e10_the_table_of_changes() -> None:
    """Written out, so that a change of the table is a change of this test."""
    assert {source.value: {target.value for target in TRANSITIONS[source]} for source in State} == {
        "queued": {"running", "failed", "canceled"},
        "running": {"input_required", "queued", "succeeded", "failed", "canceled"},
        "input_required": {"running", "queued", "succeeded", "failed", "canceled"},
        "succeeded": set(),
        "failed": set(),
        "canceled": set(),
    }


def test_e10_every_state_is_active_or_terminal() -> None:
    assert ACTIVE == (State.QUEUED, State.RUNNING, State.INPUT_REQUIRED)
    assert TERMINAL == (State.SUCCEEDED, State.FAILED, State.CANCELED)
    assert [state for state in State if state.terminal] == list(TERMINAL)


@given(states, st.lists(states, max_size=30))
def test_e10_no_sequence_of_changes_leaves_a_terminal_state(
    start: State, wanted: list[State]
) -> None:
    """Every change is guarded by `sources`: what does not fit is dropped."""
    state, ended = start, start if start.terminal else None
    for target in wanted:
        if state in sources(target):
            state = target
        if ended is None and state.terminal:
            ended = state
        assert ended is None or state is ended


@given(states, states)
def test_e10_sources_is_the_inverse_of_the_table(source: State, target: State) -> None:
    assert (source in sources(target)) == (target in TRANSITIONS[source])


def test_e10_every_state_can_be_reached_and_every_active_one_can_end() -> None:
    def reachable(start: State) -> set[State]:
        found = {start}
        while more := {target for state in found for target in TRANSITIONS[state]} - found:
            found |= more
        return found

    assert reachable(State.QUEUED) == set(State)
    for state in ACTIVE:
        assert reachable(state) >= set(TERMINAL)


def test_e10_nothing_succeeds_without_having_run() -> None:
    assert State.QUEUED not in sources(State.SUCCEEDED)


def test_x1_every_end_has_a_signal_and_a_spelling() -> None:
    assert set(END_SIGNALS) == set(TERMINAL)
    assert {state for state, _ in ENDINGS} == set(TERMINAL)
