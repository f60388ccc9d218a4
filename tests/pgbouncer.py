"""A real PgBouncer before the tests' PostgreSQL."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.ports import free_port
from tests.waiting import wait_until

_of_the_run = contextlib.ExitStack()
_shared: list[str] = []


def shared(address: str) -> str:
    """The address of a database through the pooler of this run.

    It gives each transaction a session of its own, and leaves no connection open in between.
    """
    if not _shared:
        folder = Path(_of_the_run.enter_context(tempfile.TemporaryDirectory(prefix="bb-pool-")))
        folder.chmod(0o755)  # it runs as somebody else
        pooler = pgbouncer(address, "transaction", folder, "server_lifetime = 0")
        _shared.append(_of_the_run.enter_context(pooler))
    return urlsplit(_shared[0])._replace(path=urlsplit(address).path).geturl()


def close() -> None:
    """At the end of the run."""
    _shared.clear()
    _of_the_run.close()


@contextlib.contextmanager
def pgbouncer(
    address: str, mode: str, folder: Path, *more: str, port: int | None = None
) -> Generator[str]:
    """While the block lasts, with ``more`` settings; gives the address through it."""
    program = shutil.which("pgbouncer", path=f"/usr/sbin{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.fail("pgbouncer is missing: run `make services`, or install that package")
    parts, port = urlsplit(address), port or free_port()
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={parts.hostname} port={parts.port} user={parts.username}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = any\npool_mode = {mode}\n"
        "default_pool_size = 100\n"  # 20 are too few for a worker and a program
        + "".join(f"{each}\n" for each in more)
    )
    user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    log = folder / "pgbouncer.log"
    with open(log, "wb") as file:
        running = subprocess.Popen(
            [program, "-u", user, settings], stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    through = parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()
    try:
        wait_until(lambda: _answers(through), message=log.read_text)
        yield through
    finally:
        running.kill()
        running.wait()


def _answers(address: str) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect(address).close()
        return True
    return False
