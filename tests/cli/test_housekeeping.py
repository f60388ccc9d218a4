"""`rerun`, `prune` and `doctor`."""

import re
from pathlib import Path

import pytest

from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


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
    removed = backburner("prune", "--older-than", "0")
    assert re.fullmatch(r"1 task removed, [\d.]+ kB freed\n", removed.out)
    assert backburner("show", "old").code == 3
    assert not list((home / "tasks").glob("old*"))
    assert backburner("ls", "-q", "--all-sessions").out == "active\nother\n"
    pruned = backburner("prune", "--older-than", "0", "--all-sessions", "--json")
    assert pruned.json["pruned"] == 1
    assert pruned.json["freed_bytes"] > 0
    backburner("stop", "active")


_OF_THE_MACHINE = "backburner|python|sqlite|file system|disk|process trees|open files"
VARYING = re.compile(rf"^(\w+ +(?:{_OF_THE_MACHINE}) +).*$", re.MULTILINE)
# Whether this one is a container or has logind: `test_doctor.py` looks at those.
LIFETIME = re.compile(r"^\w+ +(?:logout|container|boot) .*\n(?: {6}.*\n)*", re.MULTILINE)


def without_machine(shown: str) -> str:
    """As on any machine; whether something is well is aligned by the longest word."""
    text = VARYING.sub(r"\1…", LIFETIME.sub("", shown))
    return re.sub(r"^(ok|warn|fail) +", lambda match: f"{match[1]:6}", text, flags=re.MULTILINE)


def test_doctor_as_a_person_sees_it(backburner: Program, golden: Golden) -> None:
    well = backburner("doctor")
    assert well.code == 0, well
    golden.check("doctor", without_machine(well.out))


@pytest.mark.slow
def test_doctor_looks_at_the_keeper(backburner: Program, home: Path) -> None:
    backburner("run", "--", "sleep 60")
    wait_until(lambda: "guardian pid" in backburner("doctor").out)
    findings = {each["check"]: each for each in backburner("doctor", "--json").json}
    assert findings.keys() == {
        "backburner", "python", "sqlite", "home", "file system", "disk", "record", "keeper",
        "deliveries", "logout", "container", "boot", "process trees", "log holes", "log growth",
        "wake-ups", "open files",
    }  # fmt: skip
    assert findings["keeper"]["level"] == "ok"
    assert findings["record"]["text"] == "1 active task in session 'test'"
    assert findings["home"] == {
        "check": "home", "level": "ok", "text": str(home), "why": None, "remedy": None,
    }  # fmt: skip
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
    golden.check("doctor-fails", without_machine(ill.out))


def test_doctor_warns_of_a_home_that_others_can_read(backburner: Program, home: Path) -> None:
    home.chmod(0o755)
    warned = backburner("doctor")
    assert warned.code == 0
    assert f"warn  home           {home} is open to other users\n" in warned.out


@pytest.mark.slow
def test_e12_prune_for_room_as_a_person_sees_it(
    backburner: Program, home: Path, golden: Golden
) -> None:
    for name in ("one", "two", "three"):
        backburner("run", "--id", name, "--wait", "--", "head -c 200000 /dev/zero")
    backburner("signals", "--ack")
    backburner("run", "--id", "untold", "--session", "other", "--wait", "--", "true")
    backburner("run", "--id", "active", "--", "head -c 300000 /dev/zero; sleep 60")
    log = home / "tasks" / "active.1" / "output.log"
    wait_until(lambda: log.exists() and log.stat().st_size == 300_000)
    shown = backburner("prune", "--max-size", "450K", "--all-sessions", "--dry-run")
    assert shown.code == 0
    sizes = re.compile(r"\d+\.\d kB")
    golden.check("prune-dry-run", sizes.sub("###.# kB", shown.out + shown.err))
    document = backburner("prune", "--max-size", "450K", "--dry-run", "--json").json
    assert [each["id"] for each in document["would_prune"]] == ["one", "two", "three"]
    assert document["freed_bytes"] == sum(each["bytes"] for each in document["would_prune"])
    assert len(backburner("ls", "-q", "--all-sessions").out.split()) == 5, "nothing has gone"
    pruned = backburner("prune", "--max-size", "100K", "--all-sessions")
    assert sizes.sub("#", pruned.out) == "4 tasks removed, # freed\n"
    assert "are left, of tasks that may not go yet" in pruned.err
    assert backburner("ls", "-q", "--all-sessions").out == "active\n"
    backburner("stop", "active")


@pytest.mark.parametrize("size", ["lots", "-1", "1Q", "", "1e3", "NaN"])
def test_e12_a_size_that_is_none(backburner: Program, home: Path, size: str) -> None:
    refused = backburner("prune", f"--max-size={size}")
    assert refused.code == 2
    assert "is no size" in refused.err
    assert "write for example 512M or 2G" in refused.err
    assert list(home.iterdir()) == []


def test_a_session_that_is_not_utf_8_is_refused(
    backburner: Program, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_SESSION", "a\udcff")
    for command in (["ls"], ["run", "--", "true"], ["signals"]):
        refused = backburner(*command)
        assert refused.code == 2, refused
        assert r"'a\udcff' cannot be the name of a session" in refused.err
    assert list(home.iterdir()) == []
