"""Programs that stand where systemd's are: they write down how they are called, and answer so."""

import os
import shlex
import stat
from pathlib import Path

import pytest

_SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >>{folder}/calls
for word in "$@"; do
    if [ -e "{folder}/fails.$word" ]; then cat "{folder}/fails.$word" >&2; exit 1; fi
done
case "$2" in
    is-active) cat {folder}/active 2>/dev/null || {{ echo inactive; exit 3; }} ;;
    is-enabled) cat {folder}/enabled 2>/dev/null || {{ echo not-found; exit 4; }} ;;
    enable) echo active >{folder}/active; echo enabled >{folder}/enabled ;;
    disable) rm -f {folder}/active {folder}/enabled ;;
esac
"""

_LOGINCTL = """#!/bin/sh
echo "loginctl $*" >>{folder}/calls
if [ -e {folder}/no-logind ]; then echo 'System has not been booted with systemd' >&2; exit 1; fi
case "$1" in
    show-session) cat {folder}/logind ;;
    show-user) cat {folder}/user 2>/dev/null || {{ echo 'not logged in' >&2; exit 1; }} ;;
esac
"""


class FakeSystemd:
    """What the fakes say, and what they were asked."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        for name, text in (("systemctl", _SYSTEMCTL), ("loginctl", _LOGINCTL)):
            program = folder / name
            program.write_text(text.format(folder=shlex.quote(str(folder))))
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.logind(kills=False, lingers=False)

    def put_before(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """So that they are found first."""
        monkeypatch.setenv("PATH", f"{self._folder}{os.pathsep}{os.environ['PATH']}")

    @property
    def calls(self) -> list[str]:
        """In order; those that only ask are left out."""
        path = self._folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        asking = ("show-environment", "is-active", "is-enabled", "loginctl show-")
        return [line for line in lines if not any(word in line for word in asking)]

    def fail(self, word: str, complaint: str) -> None:
        """From now on, calls of systemctl with this word fail."""
        (self._folder / f"fails.{word}").write_text(f"{complaint}\n")

    def logind(self, *, kills: bool, lingers: bool, excluded: str = "") -> None:
        """How logind is configured."""
        yes = {True: "yes", False: "no"}
        (self._folder / "logind").write_text(
            f"KillUserProcesses={yes[kills]}\nKillOnlyUsers=\nKillExcludeUsers={excluded}\n"
        )
        (self._folder / "user").write_text(f"Linger={yes[lingers]}\n")

    def no_logind(self) -> None:
        """A machine without it."""
        (self._folder / "no-logind").touch()


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSystemd:
    """A systemd that does as it is told, before the real one on the PATH."""
    fake = FakeSystemd(tmp_path / "systemd")
    fake.put_before(monkeypatch)
    return fake
