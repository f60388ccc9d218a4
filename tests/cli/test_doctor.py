"""`doctor` on other machines: their /proc, their mounts and their systemd are fakes.

X9, X2: what would end jobs at a logout or with a container; homes that two machines could share.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backburner.cli import systemd as asking
from backburner.cli.checks import Finding, Level, home, kernel, lifetime, parts
from backburner.cli.place import Place
from backburner.cli.program import run_program
from backburner.model.home import Home
from backburner.runtime.edition import Edition, ours
from backburner.runtime.election import Sitting
from backburner.store.sqlite import filesystem
from tests.cli.fake_systemd import FakeSystemd, systemd
from tests.cli.golden import Golden

__all__ = ["systemd"]

SESSION = "0::/user.slice/user-1000.slice/session-3.scope\n"
MANAGER = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope\n"
OLD_SESSION = "1:name=systemd:/user.slice/user-1000.slice/session-c2.scope\n0::/\n"
SYSTEM = "0::/system.slice/cron.service\n"


class Machine:
    """The files of another machine."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.proc = folder / "proc"
        self.put("proc/1/comm", "systemd\n")
        self.put("proc/1/cgroup", "0::/init.scope\n")
        self.put("proc/2/comm", "kthreadd\n")
        self.put("proc/self/cgroup", SYSTEM)
        self.mounts = self.put("mounts", "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
        self.put("inotify/max_user_watches", "524288\n")
        self.put("inotify/max_user_instances", "1024\n")

    def put(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, systemd: FakeSystemd) -> Machine:
    made = Machine(tmp_path / "machine")
    monkeypatch.setattr(lifetime, "PROC", str(made.proc))
    monkeypatch.setattr(lifetime, "ROOT", f"{made.root}/")
    monkeypatch.setattr(filesystem, "MOUNTS", str(made.mounts))
    monkeypatch.setattr(kernel, "INOTIFY", f"{made.root}/inotify")
    monkeypatch.setattr(asking, "LINGER_FOLDER", f"{made.root}/linger")
    monkeypatch.setattr(asking, "user_name", lambda: "ada")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return made


def returning(value: object) -> Callable[..., object]:
    """A function that answers this, whatever it is asked."""

    def answer(*_: object) -> object:
        return value

    return answer


def told(finding: Finding) -> tuple[Level, str]:
    if finding.level is not Level.OK:
        assert finding.why, "what is not well says why that matters"
        assert finding.remedy, "and what to do"
    return finding.level, finding.text


# At a logout


@pytest.mark.parametrize("cgroup", [SESSION, OLD_SESSION])
def test_x2_logind_that_kills_a_session_is_told(
    machine: Machine, systemd: FakeSystemd, home: Path, cgroup: str
) -> None:
    machine.put("proc/self/cgroup", cgroup)
    systemd.logind(kills=True, lingers=False)
    finding = lifetime.logout(Home(home))
    level, text = told(finding)
    assert level is Level.WARN
    assert re.fullmatch(r"jobs are killed at the logout from session-(3|c2)\.scope", text)
    assert finding.remedy == "backburner service install, and: loginctl enable-linger ada"
    assert "KillUserProcesses=yes" in finding.why
    systemd.logind(kills=True, lingers=True)
    assert lifetime.logout(Home(home)).remedy == "backburner service install"


def test_x2_users_that_logind_spares(machine: Machine, systemd: FakeSystemd, home: Path) -> None:
    machine.put("proc/self/cgroup", SESSION)
    systemd.logind(kills=True, lingers=False, excluded="root ada")
    assert told(lifetime.logout(Home(home)))[0] is Level.OK
    systemd.logind(kills=False, lingers=False)
    assert told(lifetime.logout(Home(home))) == (
        Level.OK,
        "jobs go on (session-3.scope, not killed by logind)",
    )


def test_x2_jobs_under_the_user_manager_need_linger(
    machine: Machine, systemd: FakeSystemd, home: Path
) -> None:
    machine.put("proc/self/cgroup", MANAGER)
    systemd.logind(kills=False, lingers=False)
    finding = lifetime.logout(Home(home))
    assert told(finding)[0] is Level.WARN
    assert finding.remedy == "loginctl enable-linger ada"
    machine.put("linger/ada", "")  # how the disk says so while nobody is logged in
    assert told(lifetime.logout(Home(home))) == (Level.OK, "jobs go on: ada lingers")


def test_x2_a_machine_without_logind(machine: Machine, systemd: FakeSystemd, home: Path) -> None:
    systemd.no_logind()
    level, text = told(lifetime.logout(Home(home)))
    assert (level, text) == (Level.OK, "no logind here: nothing ends jobs at a logout")


def test_x2_where_the_keeper_lives_counts_and_not_where_doctor_does(
    machine: Machine, systemd: FakeSystemd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.put("proc/self/cgroup", SESSION)
    machine.put("proc/4711/cgroup", MANAGER)
    monkeypatch.setattr(lifetime, "keeper_pid", returning(4711))
    systemd.logind(kills=True, lingers=True)
    assert told(lifetime.logout(Home(home)))[0] is Level.OK


# In a container


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        (".dockerenv", "", "docker"),
        ("run/.containerenv", "", "podman"),
        ("run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"),
        ("proc/1/cgroup", "4:cpu:/kubepods/besteffort/pod1\n", "kubepods"),
        ("proc/1/cgroup", "0::/docker/0123\n", "docker"),
        ("proc/2/comm", "sh\n", "a namespace of processes"),
    ],
)
def test_x2_a_container_takes_its_jobs_along(
    machine: Machine, tmp_path: Path, name: str, text: str, shown: str
) -> None:
    machine.put(name, text)
    machine.put("proc/1/comm", "node\n")
    finding = lifetime.container(tmp_path)
    assert told(finding) == (Level.WARN, f"{shown}: jobs end with it")
    assert finding.why == "when node, its first process, ends, the kernel kills all others"
    machine.put("mounts", "21 1 0:50 / / rw - overlay overlay rw\n")
    finding = lifetime.container(tmp_path)
    assert told(finding)[1] == f"{shown}: jobs and their record end with it"
    assert "put the home on a volume" in finding.remedy


def test_x2_no_container(machine: Machine, tmp_path: Path) -> None:
    assert told(lifetime.container(tmp_path))[0] is Level.OK


# After a reboot


def test_x9_a_service_without_linger_waits_for_a_login(
    machine: Machine, home: Path, systemd: FakeSystemd
) -> None:
    assert told(lifetime.boot(Home(home)))[0] is Level.OK
    assert run_program(["service", "install"]) == 0
    assert told(lifetime.boot(Home(home)))[0] is Level.WARN
    systemd.logind(kills=False, lingers=True)
    level, text = told(lifetime.boot(Home(home)))
    assert (level, text.endswith(" starts the keeper")) == (Level.OK, True)


# The home


def test_a_home_on_a_network_file_system_fails_and_is_warned_of_where_allowed(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.put("mounts", "21 1 0:50 / / rw - nfs4 server:/export rw\n")
    finding = home.file_system(tmp_path)
    assert told(finding) == (Level.FAIL, "nfs4: a home cannot lie on a network file system")
    assert "BACKBURNER_ALLOW_NETWORK_HOME=1" in finding.remedy
    monkeypatch.setenv("BACKBURNER_ALLOW_NETWORK_HOME", "1")
    assert told(home.file_system(tmp_path))[0] is Level.WARN
    machine.put("mounts", "21 1 0:50 / / rw - virtiofs share rw\n")
    assert told(home.file_system(tmp_path))[0] is Level.WARN


def test_a_disk_that_is_nearly_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Usage:
        free = 0

    monkeypatch.setattr(home.shutil, "disk_usage", returning(Usage))
    for free, level in ((10**9, Level.OK), (10**8, Level.WARN), (10**6, Level.FAIL)):
        Usage.free = free
        finding = home.room(tmp_path)
        assert told(finding)[0] is level
    assert "backburner prune --max-size" in finding.remedy


# Our own parts


def keeper_finding(
    edition: Edition, at: Path, pid: int, monkeypatch: pytest.MonkeyPatch
) -> Finding:
    monkeypatch.setattr(parts, "sitting_keeper", returning(Sitting(pid, edition)))
    return parts.keeper(Place(Home(at), "test"))


def test_x9_a_keeper_of_another_version_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = keeper_finding(Edition("0.0.1", 1), home, 1, monkeypatch)
    assert told(older) == (Level.WARN, "pid 1, of Backburner 0.0.1")
    newer = keeper_finding(Edition("99", 99), home, 1, monkeypatch)
    assert told(newer) == (Level.OK, "pid 1, of Backburner 99, which is newer than this one")
    unknown = keeper_finding(Edition("0", 0), home, 1, monkeypatch)
    assert told(unknown) == (Level.WARN, "pid 1, of an older Backburner")
    away = keeper_finding(ours(), home, 0, monkeypatch)
    assert told(away) == (Level.OK, "runs in another container that shares this home")
    alone = keeper_finding(ours(), home, 1, monkeypatch)
    assert told(alone) == (Level.WARN, "pid 1, without a guardian")


def test_x1_dead_letters_are_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Place(Home(home), "test")
    assert told(parts.deliveries(at)) == (Level.OK, "no dead letters")
    monkeypatch.setattr(parts.Glance, "dead_letters", returning(1))
    finding = parts.deliveries(at)
    assert told(finding) == (Level.WARN, "1 signal could not be delivered through a channel")
    assert "backburner signals --failed" in finding.remedy


# The kernel


@pytest.mark.parametrize("name", ["watches", "instances"])
def test_few_inotify_watches_are_told(machine: Machine, tmp_path: Path, name: str) -> None:
    machine.put(f"inotify/max_user_{name}", "10\n")
    finding = kernel.hears_of_growth(str(tmp_path))
    assert told(finding)[0] is Level.WARN
    assert "sysctl fs.inotify.max_user_watches=" in finding.remedy


# As a person sees it

VARYING = re.compile(
    r"^(\w+ +(?:backburner|python|sqlite|disk|process trees|open files) +).*$", re.MULTILINE
)


def test_doctor_on_a_machine_with_troubles(  # noqa: PLR0917 - each is a part of the machine
    machine: Machine,
    systemd: FakeSystemd,
    home: Path,
    golden: Golden,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKBURNER_ALLOW_NETWORK_HOME", "1")
    home.chmod(0o755)
    machine.put("mounts", "21 1 0:50 / / rw - cifs //server/share rw\n")
    machine.put("proc/self/cgroup", SESSION)
    machine.put(".dockerenv", "")
    machine.put("inotify/max_user_watches", "100\n")
    systemd.logind(kills=True, lingers=False)
    assert run_program(["doctor"]) == 0, "warnings are no failure"
    golden.check("doctor-troubles", VARYING.sub(r"\1…", capsys.readouterr().out))


def test_doctor_fails_for_a_home_on_a_network(
    machine: Machine, home: Path, golden: Golden, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.put("mounts", "21 1 0:50 / / rw - 9p share rw\n")
    assert run_program(["doctor"]) == 1
    golden.check("doctor-network", VARYING.sub(r"\1…", capsys.readouterr().out))


def test_doctor_as_json_says_why(
    machine: Machine,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    json_of: Callable[[str], Any],
) -> None:
    machine.put(".dockerenv", "")
    assert run_program(["doctor", "--json"]) == 0
    found = {each["check"]: each for each in json_of(capsys.readouterr().out)}
    assert found["container"]["level"] == "warn"
    assert found["container"]["why"]
    assert found["container"]["remedy"]
    assert found["python"]["why"] is None


@pytest.fixture
def json_of() -> Callable[[str], Any]:
    import json

    return json.loads
