"""A10: the example of docs/intents.md is run as it stands there, and its numbers are ours."""

import re
import subprocess
import sys

from backburner.markers import MARKERS
from backburner.tools.intents.words import MOST_CHARACTERS, MOST_WORDS
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "intents.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_a10_the_example_says_what_the_page_says() -> None:
    assert [name for name, _ in BLOCKS] == ["python", "text"]
    (_, program), (_, output) = BLOCKS
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.stdout, run.stderr) == (output, "")


def test_a10_a1_the_numbers_and_markers_on_the_page_are_those_of_the_code() -> None:
    plain = " ".join(PAGE.split())
    assert f"at most {MOST_WORDS} words or {MOST_CHARACTERS} characters" in plain
    assert set(re.findall(r"`([#@][^`]*)`", PAGE)) == MARKERS
