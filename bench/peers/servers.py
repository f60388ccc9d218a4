"""The servers that some peers need: ours alone, on sockets in folders of the benchmark.

scripts/services.sh installs what is missing. Nothing else goes on while they start and stop.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from bench.peers.catalogue import Server
from bench.peers.environment import ROOT, Unavailable, called

_SERVICES = ROOT / ".services"
_STARTS_WITHIN_S = 60.0
_LEAVES_WITHIN_S = 20.0
_NAP_S = 0.05


@contextlib.contextmanager
def server(kind: Server) -> Generator[str]:
    """Have it run; gives the address that its clients use."""
    # A folder of its own, because another user than ours may have to run it.
    with (
        tempfile.TemporaryDirectory(prefix="backburner-bench-") as folder,
        contextlib.ExitStack() as stack,
    ):
        if kind == "postgres":
            yield stack.enter_context(_postgres(Path(folder)))
        else:
            yield stack.enter_context(_redis(Path(folder), durable=kind != "redis"))


def forget_all(address: str) -> None:
    """A round begins with an empty Redis."""
    _say(address.removeprefix("unix://"), b"FLUSHALL")


# Redis


@contextlib.contextmanager
def _redis(folder: Path, *, durable: bool) -> Generator[str]:
    program = _program("redis-server", "redis", [_SERVICES / "bin"])
    path = str(folder / "socket")
    place = ("--port", "0", "--unixsocket", path, "--dir", str(folder), "--save", "")
    durability = ("--appendonly", "yes" if durable else "no", "--appendfsync", "always")

    def answers() -> bool:
        with contextlib.suppress(OSError):
            return _say(path, b"PING") == b"+PONG"
        return False

    with _running([program, *place, *durability], folder, signal.SIGTERM) as process:
        _until_it_answers(process, answers, folder)
        yield f"unix://{path}"


def _say(path: str, words: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(path)
        connection.sendall(words + b"\r\n")
        return connection.recv(100).strip()


# Postgres


@contextlib.contextmanager
def _postgres(folder: Path) -> Generator[str]:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    from_wheel = _SERVICES / "pgserver" / "pginstall" / "bin"
    program = os.path.realpath(_program("postgres", "postgres", [*installed, from_wheel]))
    initdb, pg_isready = (
        os.path.join(os.path.dirname(program), name) for name in ("initdb", "pg_isready")
    )
    owner = _who_may_run_it()
    if owner is not None:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    # Without a sync: the power is not cut before the first round, and a commit waits for its own.
    made = ("--pgdata", str(folder / "data"), "--auth", "trust", "--username", "bench", "--no-sync")
    with _running([initdb, *made], folder, signal.SIGTERM, owner) as process:
        _until_it_answers(process, lambda: False, folder, may_end=True)
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": str(folder),
        "fsync": "on",
        "synchronous_commit": "on",
        "max_connections": "400",  # of several workers, ours and theirs
        "shared_preload_libraries": "pg_stat_statements",
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]

    def answers() -> bool:
        asked = [pg_isready, "--host", str(folder), "--quiet"]
        return subprocess.run(asked, check=False).returncode == 0

    command = [program, "-D", str(folder / "data"), *options]
    with _running(command, folder, signal.SIGINT, owner) as process:
        _until_it_answers(process, answers, folder)
        yield f"host={folder} user=bench dbname=postgres"


def _who_may_run_it() -> pwd.struct_passwd | None:
    """Postgres refuses to run as root; somebody else has to run it then."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


# Processes


def _program(name: str, service: str, places: Sequence[Path]) -> str:
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *map(str, places)])
    if (found := shutil.which(name, path=path)) is None:
        called(str(ROOT / "scripts" / "services.sh"), service)
        found = shutil.which(name, path=path)
    if found is None:
        raise Unavailable(f"{name} is not here, and could not be installed")
    return found


@contextlib.contextmanager
def _running(
    command: list[str], folder: Path, ends_with: int, owner: pwd.struct_passwd | None = None
) -> Generator[subprocess.Popen[bytes]]:
    """A process with its words in `log`, which is ended here and nowhere else."""
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is ours to hear
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(ends_with)
            try:
                process.wait(_LEAVES_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until_it_answers(
    process: subprocess.Popen[bytes],
    answers: Callable[[], bool],
    folder: Path,
    *,
    may_end: bool = False,
) -> None:
    """Returns when it answers, or has done its work; Unavailable, with its last words, else."""
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while not answers():
        if (code := process.poll()) is not None and may_end and code == 0:
            return
        if code is not None or time.monotonic() > deadline:
            words = (folder / "log").read_text(errors="replace").strip().splitlines()
            what = "failed" if code is not None else "does not answer"
            raise Unavailable(f"the server {what}: {words[-1] if words else 'without a word'}")
        time.sleep(_NAP_S)
