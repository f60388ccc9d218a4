"""`owner`: how many tasks of an owner run at once; `run --priority` (X10)."""

from pathlib import Path

import pytest

from backburner.cli.commands.owner import VERBS
from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

USAGE = 2
NOT_FOUND = 3


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(
    backburner: Program, golden: Golden, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = backburner("owner", verb, "--help")
    assert (shown.code, shown.err) == (0, "")
    for word in ("Examples:", "--home", "--session", "--json"):
        assert word in shown.out
    golden.check(f"help-owner-{verb}", shown.out, exact=True)


def test_x10_a_person_limits_an_owner_and_sees_why_a_task_waits(
    backburner: Program, golden: Golden, tmp_path: Path
) -> None:
    said = backburner("owner", "ls").err
    backburner("owner", "set", "--others", "--running", "16")
    said += backburner("owner", "set", "local", "--running", "1").err
    line = f"until test -e {tmp_path}/go; do sleep 0.05; done"
    first = backburner("run", "--title", "first", "--", line).id
    wait_until(lambda: backburner("show", first, "--json").json["state"] == "running")
    low = backburner("run", "--title", "low", "--priority=-3", "--", "true").id
    high = backburner("run", "--title", "high", "--priority", "3", "--", "true").id
    document = backburner("show", high, "--json").json
    assert (document["order"]["priority"], document["wait"]["owner_limit"]) == (3, 1)
    golden.check("owner", f"{said}{backburner('owner', 'ls').out}{backburner('ls').out}")
    assert [each["limit"] for each in backburner("owner", "ls", "--json").json] == [16, 1]
    (tmp_path / "go").touch()
    assert backburner("wait", low).code == 0
    times = {
        name: backburner("show", task, "--json").json["started_at"]
        for name, task in {"low": low, "high": high}.items()
    }
    assert times["high"] < times["low"]
    assert "no limit" in backburner("owner", "rm", "local").err
    again = backburner("owner", "rm", "local")
    assert (again.code, "owner ls" in again.err) == (NOT_FOUND, True), again
    assert backburner("owner", "rm", "--others").code == 0
    assert backburner("owner", "rm", "--others").code == NOT_FOUND


@pytest.mark.parametrize(
    "words",
    [
        ("owner", "set", "--running", "1"),
        ("owner", "set", "ada", "--others", "--running", "1"),
        ("owner", "set", "ada", "--running", "0"),
        ("owner", "set", "ada", "--running", "many"),
        ("owner", "set", "", "--running", "1"),
        ("run", "--priority", "11", "--", "true"),
        ("run", "--priority", "high", "--", "true"),
    ],
)
def test_mistakes_are_explained(backburner: Program, words: tuple[str, ...]) -> None:
    refused = backburner(*words)
    assert refused.code == USAGE
    assert refused.err.count("\n") <= 2
