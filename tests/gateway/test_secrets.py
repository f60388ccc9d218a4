"""The token of a bot is the gateway's alone: no job of a chat finds it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import COMMAND
from tests.gateway.telegram_server import ADA, TOKEN, TelegramServer
from tests.waiting import wait_until

LOOK = """#!bg
tr '\\0' '\\n' </proc/{pid}/environ | sed 's/^/seen of the gateway: /'
env | sed 's/^/seen of the job: /'
echo looked
"""


@pytest.mark.slow
def test_no_job_finds_the_token_in_an_environment(home: Path) -> None:
    with TelegramServer.running() as telegram:
        environment = {
            **os.environ,
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "BACKBURNER_TELEGRAM_URL": telegram.url,
        }
        command = [*COMMAND, "gateway", "telegram", "--allow", str(ADA), "--shell"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as gateway:
            try:
                wait_until(lambda: telegram.polls)
                telegram.says(LOOK.format(pid=gateway.pid))
                wait_until(lambda: any("complete" in each.text for each in telegram.sent))
            finally:
                gateway.send_signal(signal.SIGTERM)
                said = gateway.stderr.read() if gateway.stderr is not None else b""
        assert gateway.returncode == 0, "TERM is a plain end"
    [log] = (home / "tasks").glob("*/output.log")
    output = log.read_text()
    assert "looked" in output
    assert "seen of the gateway: " in output
    for text in (output, said.decode()):
        assert TOKEN not in text
        assert TOKEN.partition(":")[2] not in text
