"""A real PgBouncer before the tests' PostgreSQL."""

import contextlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.ports import free_port
from tests.waiting import wait_until


@contextlib.contextmanager
def pgbouncer(address: str, mode: str, folder: Path) -> Generator[str]:
    """While the block lasts; gives the address through it."""
    program = shutil.which("pgbouncer", path=f"/usr/sbin{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.fail("pgbouncer is missing: run `make services`, or install that package")
    parts, port = urlsplit(address), free_port()
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={parts.hostname} port={parts.port} user={parts.username}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = any\npool_mode = {mode}\n"
        "default_pool_size = 100\n"  # 20 are too few for a worker and a program
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
