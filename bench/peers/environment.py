"""`.bench-venv`: where the peers are installed, with exact versions, apart from our own."""

import hashlib
import subprocess
import sys
from pathlib import Path

from bench.peers.catalogue import Peer

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".bench-venv" / "bin" / "python"

_CONSTRAINTS = Path(__file__).with_name("constraints.txt")
_PATIENCE_S = 900.0


class Unavailable(Exception):
    """Something to compare with that cannot be had here; the text says why."""


def install(peer: Peer) -> None:
    """Have the peer's packages there; each peer by itself, so that one stops no other."""
    pinned = _CONSTRAINTS.read_bytes() + " ".join(peer.packages).encode() + sys.version.encode()
    stamp = ROOT / ".bench-venv" / f".installed-{peer.program}"
    version = hashlib.sha256(pinned).hexdigest()
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == version:
        return
    if not PYTHON.exists():
        called(sys.executable, "-m", "venv", str(ROOT / ".bench-venv"))
    pip = (str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    called(*pip, "--constraint", str(_CONSTRAINTS), *peer.packages)
    stamp.write_text(version)


def called(*command: str) -> None:
    """Run a program. Unavailable, with its last words, when it fails."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Unavailable(f"{name} failed: {problem}") from problem
    if done.returncode:
        words = done.stderr.strip().splitlines() or ["without a word"]
        raise Unavailable(f"{name} failed: {words[-1]}")
