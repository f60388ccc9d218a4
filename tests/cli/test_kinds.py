"""C4: Python tasks as a person sees them: what is called, with which arguments, what came of it."""

from pathlib import Path

import pytest

from backburner.sync import Backburner
from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.waiting import wait_until

FUNCTIONS = "tests.work.child.functions"

pytestmark = pytest.mark.slow


def test_c4_show_says_what_is_called(
    backburner: Program, golden: Golden, home: Path, tmp_path: Path
) -> None:
    with Backburner.open(home) as bb:
        arguments = {"text": "half", "file": str(tmp_path / "go")}
        task = bb.session("test").call(
            f"{FUNCTIONS}:say_and_wait", arguments, id="called", cwd="/", title="a call"
        )
        wait_until(lambda: "half" in backburner("logs", "called").out)
        golden.check("show-python-running", backburner("show", "called").out)
        (tmp_path / "go").touch()
        task.wait(60)
        golden.check("show-python", backburner("show", "called").out)
    document = backburner("show", "--json", "called").json
    assert document["kind"] == "python"
    assert document["command"].startswith(f'{FUNCTIONS}:say_and_wait(text="half", file=')
    listed = backburner("ls").out
    assert "a call" in listed


def test_c4_what_is_secret_is_shown_nowhere(backburner: Program, home: Path) -> None:
    with Backburner.open(home) as bb:
        arguments = {"password": "swordfish"}
        bb.session("test").call(f"{FUNCTIONS}:raises", arguments, id="secret").wait(60)
    shown = [
        backburner(*words).out
        for words in (
            ("ls",),
            ("show", "secret"),
            ("logs", "secret"),
            ("logs", "--stderr", "secret"),
        )
    ]
    assert not any("swordfish" in text for text in shown)
    assert f'{FUNCTIONS}:raises(password="[redacted]")' in shown[1]
    assert "ValueError: no good" in shown[3]
    again = backburner("rerun", "secret")
    assert (again.code, "secret" in again.err) == (2, True)


def test_c4_rerun_calls_again(backburner: Program, home: Path) -> None:
    with Backburner.open(home) as bb:
        bb.session("test").call(f"{FUNCTIONS}:add", {"a": 1, "b": 2}, id="sum").wait(60)
    new = backburner("rerun", "sum").id
    assert backburner("wait", new).code == 0
    assert backburner("show", "--json", new).json["result"] == 3
