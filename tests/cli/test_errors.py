"""Errors as a person meets them: one line, a hint, the right status, never a traceback."""

import subprocess
from pathlib import Path

import pytest

from backburner.cli import main
from tests.cli.golden import Golden
from tests.cli.program import COMMAND, Program

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

USAGE = 2
NOT_FOUND = 3


def shown(backburner: Program, *arguments: str) -> str:
    """The command line, what it said and its status, as one text."""
    result = backburner(*arguments)
    assert "Traceback" not in result.err
    assert result.out == ""
    return f"$ backburner {' '.join(arguments)}\n{result.err}[{result.code}]\n"


def test_usage_errors(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def in_process(line: str) -> str:
        """The same program without a process of its own: there are many of these."""
        monkeypatch.setattr("sys.argv", ["backburner", *line.split()])
        status = main()
        out, err = capsys.readouterr()
        assert out == ""
        return f"$ backburner {line}\n{err}[{status}]\n"

    golden.check(
        "errors-usage",
        "\n".join(
            in_process(line)
            for line in (
                "frob",
                "lss",
                "ls --frob",
                "ls --state",
                "ls --state frob",
                "ls -q --json",
                "ls --watch",
                "ls --session=",
                "ls --home mysql://x",
                "run",
                "run --env X -- true",
                "run --max-runtime soon -- true",
                "run --id a/b -- true",
                "wait",
                "wait --timeout soon bg_1",
                "stop",
                "stop --all bg_1",
                "stop --force --grace 1s bg_1",
                "logs --lines some bg_1",
                "signals --follow --all",
                "prune --older-than long",
            )
        ),
        exact=True,
    )


@pytest.mark.parametrize("command", ["show", "logs", "wait", "stop", "rerun"])
def test_an_unknown_id_is_not_found(backburner: Program, golden: Golden, command: str) -> None:
    text = shown(backburner, command, "bg_0")
    assert text.endswith(f"[{NOT_FOUND}]\n")
    golden.check("error-not-found", text.replace(command, "COMMAND", 1))


@pytest.mark.slow
def test_homes_that_cannot_be_used(backburner: Program, golden: Golden, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "backburner.db").write_text("no database at all" * 100)
    (tmp_path / "file").touch()
    golden.check(
        "errors-home",
        "\n".join(
            shown(backburner, *command, "--home", str(tmp_path / name), *rest)
            for name in ("damaged", "file")
            for command, rest in ((["ls"], []), (["run"], ["--", "true"]), (["show"], ["bg_1"]))
        ),
    )
    assert backburner("doctor", "--home", str(tmp_path / "damaged")).code == 1
    assert backburner("doctor", "--home", str(tmp_path / "file")).code == 1


def test_an_unreadable_home_is_a_clear_error(backburner: Program, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    for arguments in (["ls"], ["show", "bg_1"], ["run"]):
        rest = ["--", "true"] if arguments == ["run"] else []
        refused = backburner(*arguments, "--home", str(closed), *rest, privileged=False)
        assert refused.code == 1
        assert "Permission denied" in refused.err
    closed.chmod(0o700)


def test_settings_that_are_none(backburner: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_LOG_HEAD", "much")
    refused = backburner("run", "--", "true")
    assert refused.code == USAGE
    assert "BACKBURNER_LOG_HEAD='much' is not a number" in refused.err


def test_a_folder_that_is_gone_under_us(backburner: Program, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"cd {gone} && rmdir {gone} && exec {' '.join(COMMAND)} run -- true"
    done = subprocess.run(["sh", "-c", line], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == USAGE
    assert done.stderr.startswith("backburner: the current folder does not exist any more\n")


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with a fault that nobody thought of."""
    (tmp_path / "sitecustomize.py").write_text(
        "import backburner.runtime.glance as glance\n"
        "def recent(*_, **__): raise LookupError('not\\nthought of')\n"
        "glance.Glance.recent = recent\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_an_internal_error_keeps_its_details(
    broken: None, backburner: Program, golden: Golden, home: Path
) -> None:
    golden.check("error-internal", shown(backburner, "ls"))
    log = home / "error.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert "Traceback" in log.read_text()


def test_an_internal_error_is_shown_when_asked_for(
    broken: None, backburner: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DEBUG", "1")
    failed = backburner("ls")
    assert failed.code == 1
    assert "Traceback" in failed.err


def test_an_internal_error_without_a_home_says_how_to_see_it(
    broken: None, backburner: Program, tmp_path: Path
) -> None:
    failed = backburner("ls", "--home", str(tmp_path / "none"))
    assert failed.err.endswith("hint: set BACKBURNER_DEBUG=1 to see the details\n")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("arguments", [["ls", "--help"], ["--help"]])
def test_output_that_cannot_be_written_is_one_line(
    backburner: Program, arguments: list[str]
) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "backburner: No space left on device\nhint: run: backburner doctor\n"


def test_nobody_to_read_is_no_error(backburner: Program) -> None:
    line = f"{' '.join(COMMAND)} --help | true"
    done = subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"], capture_output=True, check=False
    )
    assert done.returncode in {0, 141}
    assert done.stderr == b""


def test_closed_streams_are_no_error(backburner: Program) -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        line = f"{' '.join(COMMAND)} ls {closed}"
        done = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
        assert done.returncode == 0, (closed, done)
        assert b"Traceback" not in done.stderr
