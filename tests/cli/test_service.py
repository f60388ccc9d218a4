"""X9: `backburner service`: start at boot, through systemd where there is one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backburner.cli import systemd as asking
from backburner.keeper.unit import Unit, cron_line, quoted
from tests.cli.fake_systemd import FakeSystemd, systemd
from tests.cli.golden import Golden
from tests.cli.program import Program

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

__all__ = ["systemd"]


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where units go."""
    folder = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return folder


def units(config: Path) -> list[Path]:
    return sorted((config / "systemd" / "user").glob("*"))


def steady(golden: Golden, text: str, home: Path) -> str:
    name = Unit.of(home).name
    return golden.steady(text).replace(name, "UNIT").replace(sys.executable, "PYTHON")


def test_x9_install_writes_the_unit_and_starts_it(
    backburner: Program, systemd: FakeSystemd, home: Path, config: Path, golden: Golden
) -> None:
    done = backburner("service", "install")
    assert done.code == 0, done
    (unit,) = units(config)
    assert systemd.calls == [
        "systemctl --user daemon-reload",
        f"systemctl --user enable --now {unit.name}",
    ]
    golden.check("service-unit", steady(golden, unit.read_text(), home), exact=True)
    user = asking.user_name()
    shown = steady(golden, done.out + done.err, home).replace(user, "USER")
    golden.check("service-install", shown, exact=True)


def test_x9_again_brings_it_up_to_date_and_restarts_it_only_where_it_changed(
    backburner: Program,
    systemd: FakeSystemd,
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backburner("service", "install")
    backburner("service", "install")
    assert not any("restart" in call for call in systemd.calls)
    monkeypatch.setenv("BACKBURNER_MAX_SIZE", "1000000")
    monkeypatch.setenv("BACKBURNER_SECRET_THING", "not a setting")
    backburner("service", "install")
    (unit,) = units(config)
    assert systemd.calls[-1] == f"systemctl --user restart {unit.name}"
    assert "\nEnvironment=BACKBURNER_MAX_SIZE=1000000\n" in unit.read_text()
    assert "SECRET" not in unit.read_text()


def test_x9_linger_is_explained(backburner: Program, systemd: FakeSystemd) -> None:
    off = backburner("service", "install")
    assert f"loginctl enable-linger {asking.user_name()}" in off.err
    systemd.logind(kills=False, lingers=True)
    on = backburner("service", "install")
    assert "lingers: it starts at boot, and goes on when you log out" in on.err
    assert "enable-linger" not in on.err
    assert not any("loginctl enable" in call for call in systemd.calls), "it is not ours to do"


def test_x9_print_touches_nothing(
    backburner: Program, systemd: FakeSystemd, home: Path, config: Path
) -> None:
    shown = backburner("service", "install", "--print")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == Unit.of(home).text()
    document = backburner("service", "install", "--print", "--json").json
    assert document == {
        "unit": Unit.of(home).name,
        "path": Unit.of(home).path,
        "text": shown.out,
    }
    assert systemd.calls == []
    assert not config.exists()


def test_x9_without_systemd_nothing_changes_and_it_says_what_to_do(
    backburner: Program,
    systemd: FakeSystemd,
    home: Path,
    config: Path,
    golden: Golden,
) -> None:
    systemd.fail("--user", "System has not been booted with systemd as init system (PID 1).")
    refused = backburner("service", "install")
    assert refused.code == 1
    assert refused.out == cron_line(home) + "\n"
    assert not config.exists()
    golden.check("service-without-systemd", steady(golden, refused.err, home), exact=True)
    assert backburner("service", "status").code == 1
    document = backburner("service", "install", "--json").json
    assert (document["installed"], document["cron"]) == (False, cron_line(home))


def test_x9_a_machine_without_its_programs_is_treated_the_same(
    backburner: Program, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = backburner("service", "install")
    assert refused.code == 1
    assert "there is no program systemctl" in refused.err
    assert not config.exists()
    assert backburner("service", "status").code == 1


@pytest.mark.parametrize("step", ["daemon-reload", "enable"])
def test_x9_where_systemctl_fails_it_is_as_before(
    backburner: Program, systemd: FakeSystemd, config: Path, step: str
) -> None:
    systemd.fail(step, "Unit is masked.")
    refused = backburner("service", "install")
    assert refused.code == 1
    assert f"systemctl --user {step} failed, so nothing was changed: Unit is masked." in refused.err
    assert units(config) == []


def test_x9_uninstall(
    backburner: Program, systemd: FakeSystemd, config: Path, golden: Golden, home: Path
) -> None:
    missing = backburner("service", "uninstall")
    assert missing.code == 3
    assert "backburner service install makes one" in missing.err
    backburner("service", "install")
    (unit,) = units(config)
    done = backburner("service", "uninstall")
    assert done.code == 0
    assert done.out == f"{unit.name} is removed; tasks go on\n"
    assert units(config) == []
    assert systemd.calls[-2:] == [
        f"systemctl --user disable --now {unit.name}",
        "systemctl --user daemon-reload",
    ]


def test_x9_status_as_a_person_and_a_program_see_it(
    backburner: Program, systemd: FakeSystemd, home: Path, golden: Golden
) -> None:
    before = backburner("service", "status")
    assert before.code == 1
    backburner("service", "install")
    after = backburner("service", "status")
    assert after.code == 0
    golden.check("service-status", steady(golden, before.out + after.out, home), exact=True)
    document = backburner("service", "status", "--json").json
    assert document == {
        "unit": Unit.of(home).name,
        "path": Unit.of(home).path,
        "installed": True,
        "enabled": "enabled",
        "active": "active",
        "linger": False,
        "keeper": None,
    }


def test_x9_each_home_has_a_unit_of_its_own(tmp_path: Path) -> None:
    default = Path(os.environ["XDG_STATE_HOME"]) / "backburner"
    assert Unit.of(default).name == "backburner.service"
    names = {
        Unit.of(path).name for path in (tmp_path / "a", tmp_path / "b" / "a", tmp_path / "ä b")
    }
    assert len(names) == 3
    assert all(name.startswith("backburner-") and name.isascii() for name in names)
    assert not any(set(name) & set(" %/\\") for name in names)


def test_x9_a_config_folder_that_is_not_absolute_is_ignored(tmp_path: Path) -> None:
    unit = Unit.of(tmp_path, {"XDG_CONFIG_HOME": "relative"})
    assert unit.path == os.path.expanduser(f"~/.config/systemd/user/{unit.name}")


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/usr/bin/python3", "/usr/bin/python3"),
        ("a b", '"a b"'),
        ("50%", "50%%"),
        ("$HOME", "$$HOME"),
        ('say "hi"', r'"say \"hi\""'),
        ("back\\slash", r'"back\\slash"'),
        ("line\nExecStart=evil", r'"line\nExecStart=evil"'),
        ("it's", '"it\'s"'),
    ],
)
def test_x9_a_word_is_one_word_for_systemd(word: str, written: str) -> None:
    assert quoted(word, command=True) == written


@pytest.mark.parametrize("name", ["plain", "with blank", "50%", "$dollar", 'quote"', "back\\slash"])
def test_x9_systemd_itself_accepts_the_unit(tmp_path: Path, name: str) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.fail("systemd-analyze is missing: install the package systemd")
    home = tmp_path / name
    file = tmp_path / "tried.service"
    file.write_text(Unit.of(home).text({"BACKBURNER_MAX_SIZE": "1", "PYTHONPATH": f"{home}"}))
    done = subprocess.run(
        [program, "--user", "verify", str(file)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("verb", ["install", "uninstall", "status"])
def test_every_verb_explains_itself(backburner: Program, golden: Golden, verb: str) -> None:
    shown = backburner("service", verb, "--help")
    assert shown.code == 0
    golden.check(f"help-service-{verb}", shown.out, exact=True)


def test_a_verb_that_does_not_exist(backburner: Program) -> None:
    refused = backburner("service", "explode")
    assert refused.code == 2
    assert "no such command 'explode'" in refused.err
