"""A program for a mount namespace of its own: the service under a real systemd user manager.

Run by `test_systemd.py`. The manager believes that the machine was booted with systemd, because
the folder that says so is there; everything of it lies in a temporary folder.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

from backburner.model.home import Home
from backburner.runtime.election import sitting_keeper
from tests.waiting import wait_until

MANAGER = "/lib/systemd/systemd"


def cli(*arguments: str, code: int | None = 0) -> str:
    """Run our command line."""
    done = subprocess.run(
        [sys.executable, "-m", "backburner.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert code is None or done.returncode == code, done
    return done.stdout


@contextlib.contextmanager
def manager(folder: Path) -> Generator[None]:
    """A service manager of this user, without anything of the user's own."""
    subprocess.run(["mount", "-t", "tmpfs", "backburner-test", "/run/systemd"], check=True)
    os.mkdir("/run/systemd/system")
    for name in ("run", "config", "state"):
        (folder / name).mkdir(mode=0o700)
    os.environ |= {
        "XDG_RUNTIME_DIR": f"{folder}/run",
        "XDG_CONFIG_HOME": f"{folder}/config",
        "XDG_STATE_HOME": f"{folder}/state",
        "HOME": str(folder),
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([MANAGER, "--user"], stdout=log, stderr=log)
    asks = ["systemctl", "--user", "show-environment"]
    try:
        wait_until(lambda: subprocess.run(asks, capture_output=True, check=False).returncode == 0)
        yield
    finally:
        process.terminate()
        process.wait(30)


def stays(home: Home) -> bool:
    sitting = sitting_keeper(home)
    return sitting is not None and sitting.edition.stays


def systemctl(verb: str) -> None:
    subprocess.run(["systemctl", "--user", verb, "backburner.service"], check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, manager(Path(folder)):
        home = Home(Path(folder) / "state" / "backburner")
        assert "backburner.service is installed and started" in cli("service", "install")
        wait_until(lambda: stays(home))
        assert "installed, enabled, active" in cli("service", "status")
        cli("run", "--id", "job", "--", "sleep 8; exit 4")
        wait_until(lambda: "running" in cli("ls"))
        systemctl("stop")
        wait_until(lambda: sitting_keeper(home) is None)
        systemctl("start")
        wait_until(lambda: stays(home))
        systemctl("restart")
        wait_until(lambda: stays(home))
        cli("wait", "job", code=4)
        shown = cli("show", "job")
        assert shown.count("  started\n") == 1, shown
        assert "adopted" in shown, shown
        assert "is removed" in cli("service", "uninstall")
        wait_until(lambda: sitting_keeper(home) is None)
        assert not (Path(folder) / "config/systemd/user/backburner.service").exists()


if __name__ == "__main__":
    main()
