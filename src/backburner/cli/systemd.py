"""Asking systemd and logind: through their programs, so that nothing of theirs is linked in.

Every answer may be "there is none here": containers, other init systems, macOS.
"""

import os
import pwd
import subprocess

from backburner.model.values import value

_PATIENCE_S = 15.0

LINGER_FOLDER = "/var/lib/systemd/linger"


@value
class Answer:
    """What a program said."""

    worked: bool
    out: str
    complaint: str
    """The last line of what it complained of."""


def ask(*command: str) -> Answer:
    """Run a program of systemd's and read its answer."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except FileNotFoundError:
        return Answer(worked=False, out="", complaint=f"there is no program {command[0]}")
    except subprocess.TimeoutExpired:
        return Answer(worked=False, out="", complaint=f"{command[0]} did not answer")
    except OSError as error:
        return Answer(worked=False, out="", complaint=f"{command[0]}: {error.strerror}")
    lines = done.stderr.strip().splitlines()
    complaint = lines[0] if lines else f"{command[0]} failed with {done.returncode}"
    return Answer(done.returncode == 0, done.stdout, complaint)


def user_manager() -> Answer:
    """Whether this user has a service manager that can be talked to."""
    return ask("systemctl", "--user", "show-environment")


@value
class Logind:
    """What logind does when this user logs out."""

    kills: bool
    """Every process of the login session is killed."""
    lingers: bool
    """The user's service manager, and what it runs, stays."""


def logind() -> Logind | None:
    """None where there is none."""
    names = ("KillUserProcesses", "KillOnlyUsers", "KillExcludeUsers")
    answer = ask("loginctl", "show-session", *(f"--property={name}" for name in names))
    if not answer.worked:
        return None
    lines = (line.partition("=") for line in answer.out.splitlines())
    said = {name: value for name, _, value in lines}
    user = user_name()
    only = said.get("KillOnlyUsers", "").split()
    spared = user in said.get("KillExcludeUsers", "").split() or (bool(only) and user not in only)
    return Logind(said.get("KillUserProcesses") == "yes" and not spared, lingers(user))


def lingers(user: str) -> bool:
    """Whether the user's services run without a login; asked of the disk where nobody is in."""
    answer = ask("loginctl", "show-user", user, "--property=Linger")
    return "Linger=yes" in answer.out or os.path.exists(f"{LINGER_FOLDER}/{user}")


def user_name() -> str:
    """This user's name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run under a number that has no name
        return str(os.getuid())
