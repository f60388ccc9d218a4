"""A real server that speaks S3 (moto's), for tests that keep artifacts in a bucket."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

from tests.ports import free_port
from tests.waiting import wait_until

BUCKET = "backburner-test"


def keys_of(address: str) -> dict[str, str]:
    """The environment with which clients reach a server there."""
    return {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": address,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
    }


@contextlib.contextmanager
def s3_server(log: Path) -> Generator[dict[str, str]]:
    """While the block lasts; gives the environment with which clients reach it."""
    port = free_port()
    environment = keys_of(f"http://127.0.0.1:{port}")
    with open(log, "ab") as file:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file,
        )  # fmt: skip
    try:
        wait_until(lambda: _make_bucket(port), timeout=60, message=log.read_text)
        yield environment
    finally:
        server.kill()
        server.wait()


def _make_bucket(port: int) -> bool:
    """As S3 has it: a PUT to its name."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("PUT", f"/{BUCKET}")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
