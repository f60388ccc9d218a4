"""X10: what a worker says of the modules that it is to carry out."""

from pathlib import Path

import pytest

from tests.cli.program import Program, Result
from tests.nodes.conftest import NewWorker
from tests.nursery import Nursery

pytestmark = [pytest.mark.slow]

USAGE = 2


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the program is started."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\nsys.exit(0)", "broken cannot be imported: SystemExit: 0 ({}, line 2)"),
        (
            "\n\n1 / 0",
            "broken cannot be imported: ZeroDivisionError: division by zero ({}, line 3)",
        ),
        (
            "import json\ndef register(_):\n    json.loads('x')",
            "column 1 (char 0) ({}, line 3)",
        ),
        (
            "def register(_):\n    raise SystemExit('enough')",
            "broken:register failed: SystemExit: enough ({}, line 2)",
        ),
        (
            "def register(bb):\n    bb.registry.get('nothing')",
            "there is no tool 'nothing' ({}, line 2)",
        ),
    ],
)
def test_x10_a_module_that_fails_is_told_of_with_its_line(
    home: Path, nursery: Nursery, modules: Path, text: str, said: str
) -> None:
    file = modules / "broken.py"
    file.write_text(text)
    refused = _worker(nursery, home, "broken")
    first = refused.err.splitlines()[0]
    assert refused.code == USAGE, refused.err
    assert first.endswith(said.format(file)), first
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "--tools: '' names no module"),
        (":shop", "--tools: ':shop' names no module"),
        ("shop:", "--tools: 'shop:' names no object after the colon"),
        (
            "nowhere",
            "nowhere cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
        ),
    ],
)
def test_x10_a_module_that_is_none_is_told_of(
    home: Path, nursery: Nursery, modules: Path, given: str, said: str
) -> None:
    (modules / "shop.py").touch()
    refused = _worker(nursery, home, given)
    assert refused.code == USAGE, refused.err
    assert refused.err.splitlines()[0] == f"backburner: {said}"


def test_x10_a_worker_says_which_agents_it_takes_on(new_worker: NewWorker) -> None:
    said = new_worker("--tools", "tests.nodes.shop").said()
    line = next(each for each in said.splitlines() if "takes on" in each)
    assert {"shout", "size_up", "program"} <= {word.strip(",") for word in line.split()}, line


def test_x10_a_tool_that_nobody_else_can_start_is_not_taken_on(
    new_worker: NewWorker, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (modules / "plain.py").write_text(
        "from backburner import tool\n\n@tool\ndef plain() -> None:\n    'Does nothing.'\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(modules))
    said = new_worker("--tools", "plain", folder=modules, forked=False).said()
    assert "plain is for nobody else: it lacks background=True" in said
    assert "takes on default\n" in said


def _worker(nursery: Nursery, home: Path, tools: str) -> Result:
    words = ["--home", str(home), "--database", "postgresql://nobody@localhost:1/none"]
    return Program(nursery)("worker", *words, "--tools", tools)
