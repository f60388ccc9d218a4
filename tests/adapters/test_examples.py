"""X7: the same program in each framework does what docs/frameworks.md says, to the letter."""

import re
from pathlib import Path

import pytest

from tests.adapters.programs import EXAMPLES, FRAMEWORKS, Framework, builder, run_program
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "frameworks.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LINES_MAX = 29


def same_every_time(output: str) -> str:
    """Without what differs from run to run: ids, and how long it took."""
    return re.sub(r"after [\d.]+s", "after 1s", re.sub(r"bg_\w+", "bg_1", output))


def on_the_page(program: str) -> str:
    """The output that the page shows below a program."""
    at = [text for _, text in BLOCKS].index(program)
    kind, output = BLOCKS[at + 1]
    assert kind == "text"
    return output


@pytest.mark.slow
@pytest.mark.timeout(300)  # a whole framework is loaded, on a machine that may be busy
@pytest.mark.usefixtures("frameworks")
@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda each: each.program)
def test_x7_the_example_does_what_the_page_says(
    framework: Framework, home: Path, tmp_path: Path
) -> None:
    path = EXAMPLES / f"{framework.program}.py"
    run = run_program(path, framework, tmp_path, builder)
    assert run.stderr == ""
    assert run.returncode == 0
    assert same_every_time(run.stdout) == same_every_time(on_the_page(path.read_text()))


def test_x7_the_page_has_every_example_and_each_is_short() -> None:
    programs = {path.stem: path.read_text() for path in EXAMPLES.glob("*.py")}
    assert set(programs) == {framework.program for framework in FRAMEWORKS}
    assert [text for kind, text in BLOCKS if kind == "python"] == [
        programs[framework.program] for framework in FRAMEWORKS
    ]
    for program in programs.values():
        assert len(program.splitlines()) <= LINES_MAX
