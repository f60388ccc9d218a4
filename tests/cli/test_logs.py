"""`logs`: all of the output, parts of it, and as it comes."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import COMMAND, Program


@pytest.fixture
def job(backburner: Program) -> str:
    """A task that has ended, with streams kept apart."""
    line = "printf 'one\\n\\033[31mtwo\\033[0m\\nthree\\n'; echo error >&2"
    backburner("run", "--id", "job", "--wait", "--separate-stderr", "--", line)
    return "job"


@pytest.mark.slow
def test_a7_parts_of_the_output(backburner: Program, job: str) -> None:
    everything = backburner("logs", job)
    assert (everything.code, everything.out, everything.err) == (0, "one\ntwo\nthree\n", "error\n")
    assert backburner("logs", "-n", "1", job).out == "three\n"
    assert backburner("logs", "--raw", "-n", "2", job).out == "\x1b[31mtwo\x1b[0m\nthree\n"
    assert backburner("logs", "--grep", "^t", job).out == "two\nthree\n"
    errors = backburner("logs", "--stderr", job)
    assert (errors.out, errors.err) == ("error\n", "")
    assert backburner("logs", "--grep", "(", job).code == 2
    assert backburner("logs", "--since", "1h", job).out == everything.out
    assert backburner("logs", "--since", "yesterday", job).code == 2


@pytest.mark.slow
def test_a7_cursors_give_what_is_new(backburner: Program, job: str) -> None:
    chunk = backburner("logs", "--json", job).json
    assert chunk == {
        "task": job,
        "state": "succeeded",
        "text": "one\ntwo\nthree\n",
        "stderr": "error\n",
        "cursor": "1.23.6",
        "dropped": 0,
        "total": 29,
        "complete": True,
    }
    assert backburner("logs", "--json", "--since", chunk["cursor"], job).json["text"] == ""
    assert backburner("logs", "--since", "1.4.6", job).out == "two\nthree\n"


@pytest.mark.slow
def test_e6_x3_of_a_flood_head_and_tail_are_there(
    backburner: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_LOG_HEAD", "8192")
    monkeypatch.setenv("BACKBURNER_LOG_TAIL", "8192")
    backburner("run", "--id", "flood", "--", "seq 1 1000000")
    backburner("wait", "flood")
    lines = backburner("logs", "flood").out.splitlines()
    assert lines[0] == "1"
    assert lines[-1] == "1000000"
    assert [line for line in lines if "of output dropped here" in line]
    assert len(lines) < 20_000


@pytest.mark.slow
def test_a_task_that_wrote_nothing_says_so(backburner: Program) -> None:
    backburner("run", "--id", "quiet", "--wait", "--", "true")
    nothing = backburner("logs", "quiet")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err == "backburner: quiet has written nothing\n"
    refused = backburner("logs", "--stderr", "quiet")
    assert refused.code == 2
    assert "keeps both streams in one log" in refused.err


@pytest.mark.slow
def test_follow_prints_as_it_is_written_and_ends_with_the_task(
    backburner: Program, tmp_path: Path
) -> None:
    # Two: the first `cat` may not have seen its end when the second text is written.
    one, two = tmp_path / "one", tmp_path / "two"
    for fifo in (one, two):
        os.mkfifo(fifo)
    backburner("run", "--id", "job", "--", f"echo first; cat {one}; printf half; cat {two}")
    with backburner.started("logs", "-f", "job") as running:
        running.read_until("first\n")
        one.write_text("second\n")
        running.read_until("first\nsecond\n")
        two.write_text(" and half\n")
        done = running.end()
    assert (done.code, done.err) == (0, "")
    assert done.out == "first\nsecond\nhalf and half\n"


@pytest.mark.slow
def test_follow_as_json_lines_and_with_a_pattern(backburner: Program, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    backburner("run", "--id", "job", "--", f"echo apple; cat {fifo}")
    with (
        backburner.started("logs", "-f", "--json", "job") as as_json,
        backburner.started("logs", "-f", "--grep", "b", "job") as matching,
    ):
        as_json.read_until("apple")
        fifo.write_text("banana\ncherry\n")
        assert matching.end().out == "banana\n"
        pieces = as_json.end().json_lines
    assert "".join(piece["text"] for piece in pieces) == "apple\nbanana\ncherry\n"
    assert pieces[-1]["complete"]
    assert pieces[-1]["state"] == "succeeded"


@pytest.mark.slow
def test_follow_begins_before_the_task_does(backburner: Program) -> None:
    with backburner.started("run", "--wait", "--", "echo begun") as running:
        assert running.end().out == "begun\n"


@pytest.mark.slow
def test_x3_redrawn_lines_are_folded_while_following(backburner: Program, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    backburner("run", "--id", "bar", "--", f"printf '10%%'; cat {fifo}; printf '\\r99%%\\n'")
    with backburner.started("logs", "-f", "bar") as plain:
        with backburner.in_terminal("logs", "-f", "bar") as terminal:
            terminal.read_until("10%")  # a line that is not whole is seen at once
            fifo.write_text("")
            assert terminal.read_to_end() == "10%\r\x1b[K99%\n"
        assert plain.end().out == "99%\n"


@pytest.mark.slow
def test_x2_ctrl_c_leaves_the_task_alone(backburner: Program) -> None:
    backburner("run", "--id", "job", "--", "echo begun; sleep 60")
    with backburner.started("logs", "-f", "job") as running:
        running.read_until("begun\n")
        left = running.interrupt()
    assert left.code == 130
    assert left.err == "backburner: left alone: job goes on\n"
    assert backburner("show", "--json", "job").json["state"] == "running"
    backburner("stop", "job")


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "-f", "--json", "--raw"])
def test_a_broken_pipe_is_silent(backburner: Program, options: str) -> None:
    backburner("run", "--id", "job", "--wait", "--", "seq 1 100000")
    line = f"{' '.join(COMMAND)} logs {options} job | head -1"
    done = subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"], capture_output=True, check=False
    )
    assert done.returncode in {0, 141}
    assert done.stderr == b""
