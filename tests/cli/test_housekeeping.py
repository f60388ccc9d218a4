"""`rerun`, `prune` and `doctor`."""

import re
from pathlib import Path

import pytest

from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.waiting import wait_until


@pytest.mark.slow
def test_rerun_starts_the_same_again(backburner: Program, tmp_path: Path) -> None:
    line = f"echo $COLOUR >>{tmp_path}/ran; exit 3"
    first = backburner("run", "--title", "again", "--env", "COLOUR=red", "--", line).id
    backburner("wait", first)
    second = backburner("rerun", first)
    assert second.id != first
    assert backburner("wait", second.id).code == 3
    assert (tmp_path / "ran").read_text() == "red\nred\n"
    task = backburner("rerun", "--json", first).json
    assert (task["title"], task["max_runtime_s"]) == ("again", 3600)
    backburner("wait", task["id"])


def test_d9_rerun_says_when_a_secret_was_not_kept(backburner: Program) -> None:
    backburner("run", "--id", "job", "--cwd", "/nowhere", "--env", "API_TOKEN=x", "--", "true")
    refused = backburner("rerun", "job")
    assert refused.code == 2
    assert "API_TOKEN was not kept" in refused.err


@pytest.mark.slow
def test_e12_prune_forgets_what_ended_long_ago(backburner: Program, home: Path) -> None:
    backburner("run", "--id", "old", "--wait", "--", "true")
    backburner("run", "--id", "other", "--session", "other", "--wait", "--", "true")
    backburner("run", "--id", "active", "--", "sleep 60")
    assert backburner("prune").out == "0 tasks removed\n"
    assert backburner("prune", "--older-than", "0").out == "1 task removed\n"
    assert backburner("show", "old").code == 3
    assert not list((home / "tasks").glob("old*"))
    assert backburner("ls", "-q", "--all-sessions").out == "active\nother\n"
    pruned = backburner("prune", "--older-than", "0", "--all-sessions", "--json")
    assert pruned.json == {"pruned": 1}
    backburner("stop", "active")


VARYING = re.compile(
    r"^(\w+ +(?:python|sqlite|file system|disk|process trees|open files) +).*$", re.MULTILINE
)


def test_doctor_as_a_person_sees_it(backburner: Program, golden: Golden) -> None:
    well = backburner("doctor")
    assert well.code == 0, well
    golden.check("doctor", VARYING.sub(r"\1…", well.out))


@pytest.mark.slow
def test_doctor_looks_at_the_keeper(backburner: Program, home: Path) -> None:
    backburner("run", "--", "sleep 60")
    wait_until(lambda: "guardian pid" in backburner("doctor").out)
    findings = {each["check"]: each for each in backburner("doctor", "--json").json}
    assert findings.keys() == {
        "python", "sqlite", "home", "file system", "disk", "record", "keeper", "process trees",
        "log holes", "log growth", "wake-ups", "open files",
    }  # fmt: skip
    assert findings["keeper"]["level"] == "ok"
    assert findings["record"]["text"] == "1 active task in session 'test'"
    assert findings["home"] == {"check": "home", "level": "ok", "text": str(home), "remedy": None}
    assert not [path for path in home.iterdir() if path.name.startswith(".doctor")]
    backburner("stop", "--all")


def test_doctor_leaves_a_home_that_does_not_exist_alone(
    backburner: Program, tmp_path: Path
) -> None:
    well = backburner("doctor", "--home", str(tmp_path / "none" / "yet"))
    assert well.code == 0
    assert "made at the first start" in well.out
    assert not (tmp_path / "none").exists()


def test_doctor_fails_with_a_remedy(backburner: Program, tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "file").touch()
    ill = backburner("doctor", "--home", str(tmp_path / "file"))
    assert ill.code == 1
    golden.check("doctor-fails", VARYING.sub(r"\1…", ill.out))


def test_doctor_warns_of_a_home_that_others_can_read(backburner: Program, home: Path) -> None:
    home.chmod(0o755)
    warned = backburner("doctor")
    assert warned.code == 0
    assert f"warn  home           {home} is open to other users\n" in warned.out
