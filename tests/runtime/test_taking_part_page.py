"""X5: the examples of docs/taking-part.md are run as they stand there."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from backburner import Backburner, State, Task
from tests.conftest import REPOSITORY
from tests.runtime.scripts import open_questions

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

PAGE = (REPOSITORY / "docs" / "taking-part.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def example(language: str, containing: str) -> str:
    (found,) = [text for name, text in BLOCKS if name == language and containing in text]
    return found


async def done(task: Task) -> Task:
    await task.wait(30)
    assert task.state is State.SUCCEEDED, (await task.output()).text
    return task


async def test_x5_the_page_has_the_examples_that_are_run_here() -> None:
    assert [name for name, _ in BLOCKS] == ["sh", "sh", "awk", "python", "sh"]


async def test_x5_with_our_program(
    shared_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "app.tar.gz").write_text("x")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    script = example("sh", "backburner ask") + '\necho "branch $branch"'
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(script, cwd=tmp_path)
        await open_questions(task)
        await task.send("main")
        await done(task)
        assert (await task.output()).text == "branch main\n"
        document = task.document()
        assert (document["detail"], document["result"]) == ("building", {"passed": 42})
        assert document["progress"]["label"] == "main.c"
        assert [each["name"] for each in document["artifacts"]] == ["app.tar.gz"]


async def test_x5_without_our_program(shared_home: Path) -> None:
    awk = shlex.quote(example("awk", "printf"))
    python = f"{shlex.quote(sys.executable)} -c {shlex.quote(example('python', 'json'))}"
    script = "\n".join([example("sh", '{"status"'), f"seq 3 | awk {awk}", python])
    async with Backburner.open(shared_home) as bb:
        task = await done(await bb.session("s").run(script))
        assert (task.record.detail, task.result) == ("building", {"passed": 42})
        assert task.record.progress is not None
        assert task.record.progress.current == 3


async def test_x5_asking_without_our_program(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(example("sh", "until") + '\necho "it is $colour"')
        await open_questions(task)
        assert await task.send("blue") == "colour"
        await done(task)
        assert (await task.output()).text == "it is blue\n"
