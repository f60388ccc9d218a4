"""Other editions of the package: copies with another version, run in processes of their own."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import backburner

SOURCE = Path(backburner.__file__).parent

FUTURE = """
CREATE TABLE future (seq INTEGER PRIMARY KEY) STRICT;
ALTER TABLE task ADD COLUMN mood TEXT;
"""


@dataclass(frozen=True, slots=True)
class Copy:
    """One installed copy."""

    folder: Path

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder)}

    def cli(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run its command line."""
        return subprocess.run(
            [sys.executable, "-m", "backburner.cli", *arguments],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def run(self, *arguments: str) -> str:
        """Start a task with it. Answers the id."""
        done = self.cli("run", *arguments)
        assert done.returncode == 0, done
        return done.stdout.strip()

    def started(self, *arguments: str) -> "subprocess.Popen[str]":
        """Its command line while it runs."""
        return subprocess.Popen(
            [sys.executable, "-m", "backburner.cli", *arguments],
            env=self.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )


def copy_package(
    folder: Path, version: str, *, migration: str | None = None, silent: bool = False
) -> Copy:
    """The package as it is, of another version.

    ``migration`` is one more of the record. ``silent``: its keeper does not say of which edition
    it is, as those from before that was said.
    """
    package = folder / "backburner"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    _change(package / "__init__.py", r'__version__ = ".*"', f'__version__ = "{version}"')
    if migration is not None:
        sql = package / "store" / "sqlite" / "sql"
        number = max(int(path.name[:4]) for path in sql.glob("0*.sql")) + 1
        (sql / f"{number:04d}_future.sql").write_text(migration)
    if silent:
        edition = package / "runtime" / "edition.py"
        _change(edition, r'return f"\{pid\}\\nbackburner .*"', 'return f"{pid}\\\\n"')
    return Copy(folder)


def _change(path: Path, pattern: str, text: str) -> None:
    changed, count = re.subn(pattern, text, path.read_text())
    assert count == 1, f"{path.name} is not what this expects"
    path.write_text(changed)
