"""A9, C3, D4, D9: the table of modes, roles and actions, cell by cell."""

import pytest

from backburner.model.errors import NotAllowed, UsageError
from backburner.model.policy import ALLOWED, FREE, Action, Mode, Policy, Role

READING = {Action.READ}
PLANNING = {Action.READ, Action.TAKE}
EVERYTHING = set(Action)
WORKING = EVERYTHING - {Action.STOP_OTHERS}


@pytest.mark.parametrize(
    ("mode", "role", "allowed"),
    [
        ("normal", "admin", EVERYTHING),
        ("normal", "user", WORKING),
        ("normal", "viewer", READING),
        ("plan", "admin", PLANNING),
        ("plan", "user", PLANNING),
        ("plan", "viewer", READING),
        ("dry_run", "admin", EVERYTHING),
        ("dry_run", "user", WORKING),
        ("dry_run", "viewer", READING),
    ],
)
def test_a9_every_cell_of_the_table(mode: str, role: str, allowed: set[Action]) -> None:
    policy = Policy.of(mode, role)
    assert {action for action in Action if policy.allows(action)} == allowed
    for action in Action:
        if action in allowed:
            policy.check(action)
        else:
            with pytest.raises(NotAllowed, match=f"{action.value} is not allowed here: .+"):
                policy.check(action)


def test_every_mode_and_every_role_has_its_row() -> None:
    assert set(ALLOWED) == set(Mode) | set(Role)


@pytest.mark.parametrize("action", Action)
def test_d4_a_dry_run_plays_what_changes_something(action: Action) -> None:
    assert Policy.of("dry_run", "user").plays(action) is (action is not Action.READ)
    assert not FREE.plays(action)


def test_a9_a_refusal_says_why_and_what_is_allowed() -> None:
    with pytest.raises(NotAllowed, match="plan mode, which changes nothing") as caught:
        Policy.of("plan", "user").check(Action.START)
    assert "reading" in caught.value.remedy
    with pytest.raises(NotAllowed, match="a viewer only looks") as caught:
        Policy.of("normal", "viewer").check(Action.STOP)
    assert caught.value.remedy == "reading is allowed"


@pytest.mark.parametrize(("mode", "role"), [("read", "user"), ("normal", "root"), ("", "user")])
def test_a_mode_or_a_role_that_there_is_not_is_refused(mode: str, role: str) -> None:
    with pytest.raises(UsageError, match="choose from"):
        Policy.of(mode, role)


def test_the_usual_policy_is_one_object() -> None:
    """So that whoever is free to act pays nothing for being asked."""
    assert Policy.of("normal", "user") is FREE
