"""Help, the version, and options that do not exist."""

import subprocess
import sys
from pathlib import Path

import pytest

import backburner as package
from backburner.cli.program import COMMANDS, run_program
from backburner.model.errors import UsageError
from tests.cli.golden import Golden
from tests.cli.program import Program

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@pytest.fixture(autouse=True)
def eighty_columns(backburner: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(backburner: Program, golden: Golden, command: str) -> None:
    shown = backburner(command, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert "Examples:" in shown.out
    if "VERB" not in shown.out:  # each verb has them, and explains itself
        for option in ("--home", "--session", "--json"):
            assert option in shown.out
    golden.check(f"help-{command}", shown.out, exact=True)


def test_without_a_command_it_prints_its_help(backburner: Program, golden: Golden) -> None:
    shown = backburner()
    assert (shown.code, shown.err) == (0, "")
    golden.check("help", shown.out, exact=True)
    assert backburner("--help") == backburner("-h") == shown


def test_version(backburner: Program) -> None:
    assert backburner("--version").out == f"backburner {package.__version__}\n"


def test_the_installed_program_is_the_same(backburner: Program) -> None:
    script = Path(sys.executable).with_name("backburner")
    done = subprocess.run([script, "--version"], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == backburner("--version").out


def test_an_option_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no such option: --ready-when"):
        run_program(["run", "--ready-when=1", "--", "true"])


def test_a_command_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no such command 'fly'"):
        run_program(["fly"])
