"""B4: the example of docs/agents.md is run as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from backburner.model.limits import AGENT_DEPTH_MAX, ATTACHMENT_MAX_BYTES, ATTACHMENTS_MAX
from backburner.work.agents import builtin, running
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "agents.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_b4_the_example_says_what_the_page_says(home: Path) -> None:
    assert [name for name, _ in BLOCKS] == ["python", "text"]
    (_, program), (_, output) = BLOCKS
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "BACKBURNER_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.stdout, run.stderr) == (output, "")


def test_b4_the_numbers_on_the_page_are_those_of_the_code() -> None:
    assert AGENT_DEPTH_MAX == 2
    assert "two deep" in PAGE
    assert f"at most {ATTACHMENTS_MAX}, and {ATTACHMENT_MAX_BYTES // 2**20} MiB" in PAGE
    assert f"after {builtin.REQUESTS_MAX} turns" in PAGE
    assert f"silent; {builtin.TIMEOUT_S:g}" in PAGE
    assert running.CLOSE_LIMIT_S == 10
    assert "ten seconds" in PAGE
