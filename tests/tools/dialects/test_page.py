"""X7: the examples of docs/dialects.md are run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from backburner.dialects import DIALECTS
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "dialects.md").read_text(encoding="utf-8")
EXAMPLES = {
    title: (program, output)
    for title, program, output in re.findall(
        r"^## (\w+)\n.*?^```python\n(.*?)^```\n\n```text\n(.*?)^```$",
        PAGE,
        re.MULTILINE | re.DOTALL,
    )
}


def test_x7_every_dialect_has_an_example() -> None:
    assert tuple(EXAMPLES) == DIALECTS
    assert PAGE.count("```python") == len(EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_x7_the_example_says_what_the_page_says(home: Path, dialect: str) -> None:
    program, output = EXAMPLES[dialect]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "BACKBURNER_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.stdout, run.stderr) == (output, "")
