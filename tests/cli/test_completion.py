"""Completion of commands, options, ids and titles: what is offered, and that it is quick."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.cli.completion import MOST
from backburner.cli.completion_tree import commands, first_sentence
from backburner.cli.program import COMMANDS
from tests.cli.program import Program
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

ASK = """
source "$0"
compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=${KIND_OF_TAB:-9}
_backburner
((${#COMPREPLY[@]})) && printf '%s\\n' "${COMPREPLY[@]}"
exit 0
"""


@pytest.fixture
def bash(backburner: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Bash":
    """bash with the real script, and the real program in its path."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    script = tmp_path / "completion.bash"
    script.write_text(backburner("completion", "bash").out)
    return Bash(script)


class Bash:
    """Asks the script what it would offer."""

    def __init__(self, script: Path) -> None:
        self._script = script

    def __call__(self, *words: str) -> list[str]:
        done = subprocess.run(
            ["bash", "-c", ASK, self._script, "backburner", *words],
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.splitlines()


def offered(backburner: Program, *arguments: str) -> list[str]:
    answer = backburner("completion", "--candidates", *arguments)
    assert answer.err == ""
    return answer.out.splitlines()


@pytest.mark.slow
def test_ids_and_titles_are_completed(backburner: Program, bash: Bash) -> None:
    ended = backburner("run", "--cwd", "/nowhere", "--title", "Build it", "--", "true").out.strip()
    first = backburner("run", "--title", "tests, one", "--", "sleep 60").id
    second = backburner("run", "--title", "tests, two", "--", "sleep 60").id
    for task in (first, second):
        wait_until(lambda task=task: task in backburner("ls", "-q", "--state", "running").out)
    assert bash("show", ended[:8]) == [ended]
    assert bash("show", "build") == [ended]  # a piece of its title, in any case
    assert bash("stop", "build") == []  # it has ended
    assert {line.split()[0] for line in bash("stop", "")} == {first, second}
    assert all("running, tests, " in line for line in bash("wait", "bg_"))
    by_title = bash("logs", "tests")
    assert by_title[-1] == " "  # or bash would put what the ids have in common over `tests`
    assert {line.split()[0] for line in by_title[:-1]} == {first, second}
    assert bash("stop", "--session", "other", "") == []
    assert bash("stop", "--session", "=", "other", "") == []
    assert bash("stop", first, "two") == [second]  # takes several
    assert bash("show", first, "two") == []  # takes one
    backburner("stop", "--all")


@pytest.mark.slow
def test_cycling_through_ids_puts_ids_into_the_line(
    backburner: Program, bash: Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {backburner("run", "--cwd", "/nowhere", "--", "true").out.strip() for _ in range(2)}
    monkeypatch.setenv("KIND_OF_TAB", "37")
    assert set(bash("show", "")) == ids


@pytest.mark.slow
def test_commands_options_and_values_are_completed(backburner: Program, bash: Bash) -> None:
    assert set(bash("")) == set(COMMANDS)
    assert bash("to") == ["top", "token"]
    assert bash("top", "--all") == ["--all-sessions"]
    assert "--session" in bash("run", "--")
    assert bash("ls", "--state", "run") == ["running"]
    assert bash("ls", "--state", "=", "run") == ["running"]
    assert bash("ls", "--home", "/us") == ["/usr"]
    assert bash("completion", "") == ["bash", "zsh", "fish"]
    assert "rm" in bash("queue", "")
    backburner("queue", "set", "gpu", "--width", "2")
    assert bash("queue", "pause", "") == ["gpu"]
    assert bash("run", "--queue", "g") == ["gpu"]
    backburner("run", "--session", "another", "--cwd", "/nowhere", "--", "true")
    assert bash("ls", "--session", "a") == ["another"]
    assert "true" in bash("run", "--", "tru")


def test_it_never_complains(backburner: Program, home: Path, tmp_path: Path) -> None:
    """Whatever is wrong, a shell would draw it into the line that is typed."""
    assert offered(backburner, "tasks", "--", "") == []  # no record
    (home / "backburner.db").write_bytes(b"not a record" * 1000)
    for arguments in (
        ["tasks", "--", ""],
        ["tasks"],
        [],
        ["nonsense", "--home"],
        ["tasks", "--session", "", "--home", "", "--", "x"],
        ["tasks", "--home", str(tmp_path / "missing"), "--", "x"],
        ["tasks", "--home", "postgresql://x", "--", "x"],
    ):
        assert offered(backburner, *arguments) == []


@pytest.mark.slow
async def test_there_are_not_too_many_and_nothing_in_them_is_obeyed(backburner: Program) -> None:
    async with Backburner.open() as opened:
        session = opened.session("test")
        for _ in range(MOST + 5):
            await session.run("true", cwd="/nowhere", title="same")
        evil = await session.run("true", cwd="/nowhere", title="evil\t\n\x1b[31m$(touch x)`x`" * 9)
        await opened.session("a b;c").run("true", cwd="/nowhere")
    assert len(offered(backburner, "tasks", "--", "same")) == MOST
    (line,) = offered(backburner, "tasks", "--", evil.id)
    assert line.count("\t") == 1
    assert line.isascii() or "…" in line
    assert "\x1b" not in line
    assert offered(backburner, "sessions", "--", "") == ["test"]  # what a shell would split is not


def test_it_loads_nothing_that_is_slow_to_load(backburner: Program) -> None:
    backburner("run", "--cwd", "/nowhere", "--", "true")
    program = (
        "import sys; from backburner.cli import main;"
        "sys.argv = ['backburner', 'completion', '--candidates', 'tasks', '--', 'bg_'];"
        "main(); print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    candidate, modules = done.stdout.splitlines()
    assert candidate.startswith("bg_")
    loaded = set(modules.split())
    slow = {"asyncio", "typer", "rich", "psutil", "subprocess", "pydantic", "textual"}
    assert not slow & loaded


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_knows_every_command_and_option(backburner: Program, shell: str) -> None:
    script = backburner("completion", shell)
    assert (script.code, script.err) == (0, "")
    for command in commands():
        for name, each in command.walk():
            assert name.split()[-1] in script.out
            for option in each.options:
                for spelling in option.names:
                    assert spelling.lstrip("-") in script.out, (name, spelling)
    assert "completion --candidates" in script.out
    assert "{" + "commands}" not in script.out


def test_an_unknown_shell_is_refused(backburner: Program) -> None:
    refused = backburner("completion", "tcsh")
    assert (refused.code, refused.out) == (2, "")
    assert "use one of bash, zsh, fish" in refused.err
    assert {each["name"] for each in backburner("completion", "bash", "--json").json} == set(
        COMMANDS
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("One. Two.", "One"), ("Only 1.5 of it.", "Only 1.5 of it"), ("", ""), ("a\n b", "a b")],
)
def test_meanings_are_one_sentence(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence
