"""A holder starts quickly because it loads little, and says what it could not write."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backburner.work.holder import launch
from backburner.work.holder.screen import KEPT, Screen


def test_a_holder_loads_nothing_heavy() -> None:
    """In a fresh interpreter, with everything that it needs before and after the job's start."""
    words = launch.holder_words("pipe", 24, 80)
    program = words[4].replace(
        "main(sys.argv[2:])", "import backburner.work.holder.service; print(*sys.modules)"
    )
    shown = subprocess.run(
        [*words[:4], program, *words[5:]], capture_output=True, text=True, check=True
    )
    loaded = set(shown.stdout.split())
    assert "backburner.work.holder.service" in loaded, shown
    assert not loaded & {"typing", "dataclasses", "contextlib", "asyncio", "re", "site", "json"}
    assert {name for name in loaded if name.startswith("backburner.model")} == set()


def test_a_holder_is_known_by_its_command_line() -> None:
    words = launch.holder_words("pty", 24, 80)
    assert launch.is_holder([*words, "cat"])
    assert not launch.is_holder([sys.executable, "-I", "-S", "-c", "pass"])
    assert not launch.is_holder(["cat"])
    assert launch.shown_holder(words) == "backburner-holder pty"


def test_without_its_interpreter_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(FileNotFoundError, match="the Python that holds its input is gone"):
        launch.holder_words("pty", 24, 80)


def test_x3_on_a_full_disk_the_log_says_how_much_it_misses(tmp_path: Path) -> None:
    """The job does not wait for the disk, and whoever is attached sees everything."""
    path = tmp_path / "log"
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    good = os.dup(log)
    full = os.open("/dev/full", os.O_WRONLY)
    screen = Screen(log)
    screen.show(b"one\r\n")
    os.dup2(full, log)
    screen.show(b"two\r\n")
    screen.show(b"three\r\n")
    os.dup2(good, log)
    screen.show(b"four\r\n")
    for fd in (log, good, full):
        os.close(fd)
    note = b"\r\n[backburner: 12 bytes of output could not be written]\r\n"
    assert path.read_bytes() == b"one\r\n" + note + b"four\r\n"
    assert screen.replay() == b"one\r\ntwo\r\nthree\r\nfour\r\n"


def test_x3_what_is_kept_for_who_attaches_is_bounded() -> None:
    with open(os.devnull, "wb") as nowhere:
        screen = Screen(nowhere.fileno())
        screen.show(b"\x1b[?1049h\x1b[?25l")
        for number in range(5000):
            screen.show(f"{number}: {'x' * 90}\r\n".encode())
        screen.show(b"\x1b[?25h")
    replay = screen.replay()
    assert KEPT < len(replay) < 2 * KEPT + 100
    assert replay.startswith(b"\x1b[?1049h\x1b[?25l")  # as it was before what follows
    assert replay.endswith(b"\x1b[?25h")
