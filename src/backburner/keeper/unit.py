"""The systemd unit that runs the keeper of a home: its name, its place and its text.

A unit of the user's own manager, so that no root is needed. Pure, but for looking at the
environment of whoever installs it.
"""

import hashlib
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from backburner.keeper.guardian import STAY
from backburner.model.home import Home, resolve_home
from backburner.model.limits import Settings
from backburner.model.values import value
from backburner.store.sqlite.filesystem import ALLOW

_TEXT = """\
# Written by `backburner service install`, which also writes it anew.
[Unit]
Description=Backburner, which looks after the background tasks in {shown}

[Service]
Type=exec
ExecStart={command}
{environment}\
StandardOutput=append:{log}
StandardError=append:{log}
# Stopping or restarting this unit leaves the tasks alone; the next keeper adopts them.
KillMode=process
Restart=on-failure
RestartSec=5
# A task that the kernel ends for lack of memory is that task's end, and not the unit's.
OOMPolicy=continue
# So that each task can have a cgroup of its own.
Delegate=yes
UMask=0077

[Install]
WantedBy=default.target
"""

_KEPT = frozenset(
    ["PYTHONPATH", ALLOW, *(f"BACKBURNER_{field.name.upper()}" for field in fields(Settings))]
)


@value
class Unit:
    """The unit of one home."""

    name: str
    path: str
    root: Path

    @classmethod
    def of(cls, root: Path, environment: Mapping[str, str] = os.environ) -> "Unit":
        """The home of the user has the plain name, and every other home one of its own."""
        name = (
            "backburner.service"
            if root == resolve_home("")
            else f"backburner-{_slug(root)}.service"
        )
        config = environment.get("XDG_CONFIG_HOME", "")
        folder = config if os.path.isabs(config) else os.path.expanduser("~/.config")
        return cls(name, f"{folder}/systemd/user/{name}", root)

    def text(self, environment: Mapping[str, str] = os.environ) -> str:
        """What the file says. Settings of whoever installs it hold for the keeper too."""
        kept = sorted(_KEPT & environment.keys())
        lines = (f"Environment={quoted(f'{name}={environment[name]}')}\n" for name in kept)
        return _TEXT.format(
            shown=_plain(str(self.root)),
            log=Home(self.root).keeper_log.replace("%", "%%"),
            command=" ".join(quoted(word, command=True) for word in self.command()),
            environment="".join(lines),
        )

    def command(self) -> Sequence[str]:
        """The guardian of a keeper that stays."""
        return [sys.executable, "-m", "backburner.keeper.guardian", str(self.root), STAY]


def quoted(word: str, *, command: bool = False) -> str:
    """One word as systemd reads it; in a command a dollar would be a variable."""
    word = word.replace("%", "%%")
    if command:
        word = word.replace("$", "$$")
    if re.fullmatch(r"[\w@%+=:,./$-]+", word, re.ASCII):
        return word
    for plain, escaped in _ESCAPES.items():
        word = word.replace(plain, escaped)
    return f'"{word}"'


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def _plain(text: str) -> str:
    """For a line that people read."""
    return re.sub(r"[\x00-\x1f\\]", "?", text).replace("%", "%%")


def cron_line(root: Path) -> str:
    """The same at boot for a machine without systemd: a line of a crontab."""
    words = [*Unit.of(root).command(), ">>" + shlex.quote(Home(root).keeper_log), "2>&1"]
    quoted_words = [*map(shlex.quote, words[:-2]), *words[-2:]]
    return f"@reboot {' '.join(quoted_words)}".replace("%", r"\%")


def _slug(root: Path) -> str:
    """Readable, and never the same for two homes."""
    readable = re.sub(r"[^a-zA-Z0-9]+", "-", root.name).strip("-")[:32] or "home"
    return f"{readable}-{hashlib.blake2b(os.fsencode(root), digest_size=4).hexdigest()}"
