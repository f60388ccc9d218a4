"""What would end jobs from outside: a logout, the end of a container; and what starts them again.

Asked of the keeper where there is one, because jobs live where it does, else of this process, from
which one would be started.
"""

import os
import re
from pathlib import Path

from backburner.cli import systemd
from backburner.cli.checks.finding import Finding, Level
from backburner.keeper.unit import Unit
from backburner.model.home import Home
from backburner.runtime.election import keeper_pid
from backburner.store.sqlite import filesystem

PROC = "/proc"
ROOT = "/"

_SESSION = re.compile(r"/(session-[^/]+\.scope)(?:/|$)", re.MULTILINE)
_MANAGER = re.compile(r"/user@\d+\.service(?:/|$)", re.MULTILINE)
_MARKS = {"docker": ".dockerenv", "podman": "run/.containerenv"}
_NAMES = re.compile(r"/(docker|kubepods|lxc|libpod|machine\.slice/machine-)[-/.]", re.MULTILINE)


def logout(home: Home) -> Finding:
    """What becomes of jobs when this user logs out."""
    logind = systemd.logind()
    if logind is None:
        return Finding("logout", Level.OK, "no logind here: nothing ends jobs at a logout")
    place = _read(f"{PROC}/{keeper_pid(home) or 'self'}/cgroup")
    session = _SESSION.search(place)
    user = systemd.user_name()
    if _MANAGER.search(place):
        if logind.lingers:
            return Finding("logout", Level.OK, f"jobs go on: {user} lingers")
        return Finding(
            "logout",
            Level.WARN,
            "jobs end when the last session of this user does",
            f"loginctl enable-linger {user}",
            "they run under the user's service manager, which does not linger",
        )
    if session is not None and logind.kills:
        linger = "" if logind.lingers else f", and: loginctl enable-linger {user}"
        return Finding(
            "logout",
            Level.WARN,
            f"jobs are killed at the logout from {session[1]}",
            f"backburner service install{linger}",
            "logind ends every process of a session (KillUserProcesses=yes)",
        )
    where = session[1] if session is not None else "no login session"
    return Finding("logout", Level.OK, f"jobs go on ({where}, not killed by logind)")


def container(folder: Path) -> Finding:
    """What becomes of jobs when the container ends that we may be in."""
    name = _container()
    if name is None:
        return Finding("container", Level.OK, "none: jobs last as long as the machine")
    first = _read(f"{PROC}/1/comm").strip() or "process 1"
    remedy = "keep the container running for as long as its jobs"
    if filesystem.kind_of(folder) in ("overlay", "aufs", "tmpfs"):
        return Finding(
            "container",
            Level.WARN,
            f"{name}: jobs and their record end with it",
            f"{remedy}, and put the home on a volume",
            f"when {first} ends the kernel kills all others, and the home lies inside",
        )
    return Finding(
        "container",
        Level.WARN,
        f"{name}: jobs end with it",
        remedy,
        f"when {first}, its first process, ends, the kernel kills all others",
    )


def _container() -> str | None:
    for name, mark in _MARKS.items():
        if os.path.exists(f"{ROOT}{mark}"):
            return name
    said = _read(f"{ROOT}run/systemd/container").strip()
    if said:
        return said
    named = _NAMES.search(_read(f"{PROC}/1/cgroup"))
    if named is not None:
        return named[1].partition(".")[0]
    # The kernel's own threads are seen in the first namespace of processes alone.
    second = _read(f"{PROC}/2/comm").strip()
    if os.path.exists(f"{PROC}/1/comm") and second != "kthreadd":
        return "a namespace of processes"
    return None


def boot(home: Home) -> Finding:
    """Who looks after tasks when the machine has started again."""
    unit = Unit.of(home.root)
    if not os.path.exists(unit.path):
        return Finding(
            "boot",
            Level.OK,
            "the first command after it tells how tasks ended (service install: at once)",
        )
    user = systemd.user_name()
    if systemd.lingers(user):
        return Finding("boot", Level.OK, f"{unit.name} starts the keeper")
    return Finding(
        "boot",
        Level.WARN,
        f"{unit.name} starts the keeper when {user} logs in",
        f"loginctl enable-linger {user}",
        "a user's services start at boot only where the user lingers",
    )


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return ""
