"""What the hooks of coding agents print, and what becomes of what they have printed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backburner import sync
from backburner.mcp.hooks import HOOKS, occasion, read_input
from backburner.mcp.naming import session_name
from tests.cli.golden import Golden
from tests.cli.program import COMMAND, Program
from tests.nursery import Nursery


@pytest.fixture
def backburner(home: Path, nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("BACKBURNER_SESSION", "test")
    return Program(nursery)


def test_x1_each_agent_has_a_format_of_its_own() -> None:
    lines: list[str] = []
    for name, hook in HOOKS.items():
        for event in hook.events:
            at = occasion(name, {"hook_event_name": event})
            assert at.takes
            shown = repr(at.printed("one\nline “more”"))
            lines += [f"{name} {event}".rstrip(), f"    {shown}"]
    Golden({}).check("hooks", "\n".join([*lines, ""]), exact=True)


@pytest.mark.slow
def test_x1_a_hook_tells_what_is_new_once(backburner: Program) -> None:
    backburner("run", "--id", "good", "--title", "a \x1b[31mgood\none", "--wait", "--", "true")
    backburner("run", "--id", "bad", "--title", "a bad one", "--wait", "--", "exit 3")
    given = json.dumps({"hook_event_name": "SessionStart", "cwd": os.getcwd(), "source": "startup"})
    told = backburner("signals", "--hook", "claude-code", stdin=given)
    assert (told.code, told.err) == (0, "")
    output = told.json["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    Golden({}).check("hook-told", output["additionalContext"] + "\n")
    assert {signal["state"] for signal in backburner("signals", "--json").json} == {"delivered"}
    again = backburner("signals", "--hook", "claude-code", stdin=given)
    assert (again.code, again.out, again.err) == (0, "", "")


@pytest.mark.slow
def test_x1_at_an_event_that_takes_nothing_nothing_is_taken(backburner: Program) -> None:
    backburner("run", "--id", "good", "--wait", "--", "true")
    for name, event in (("cursor", "beforeSubmitPrompt"), ("claude-code", "PreToolUse")):
        given = json.dumps({"hook_event_name": event})
        told = backburner("signals", "--hook", name, stdin=given)
        assert (told.code, told.out, told.err) == (0, "", "")
    assert [signal["state"] for signal in backburner("signals", "--json").json] == ["pending"]


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"no JSON",
        b"[1]",
        b"{",
        b"\xff}",
        b'{"hook_event_name": 7, "cwd": 8}',
        b'{"cwd": "/a\\u0000b", "workspace_roots": ["/a\\ud800b"]}',
    ],
)
def test_x1_an_agent_that_says_nothing_sensible_is_told_as_at_a_prompt(given: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, given)
    os.close(writing)
    try:
        at = occasion("claude-code", read_input(reading))
    finally:
        os.close(reading)
    assert (at.event, at.folder) == ("UserPromptSubmit", os.getcwd())
    assert at.sessions()


@pytest.mark.slow
def test_x1_what_nobody_could_read_is_told_again(backburner: Program) -> None:
    backburner("run", "--id", "good", "--wait", "--", "true")
    with open("/dev/full", "wb") as full:
        failed = subprocess.run(
            [*COMMAND, "signals", "--hook", "claude-code"],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert failed.returncode not in (0, 2)  # 2 would block the prompt
    assert [signal["state"] for signal in backburner("signals", "--json").json] == ["pending"]


@pytest.mark.slow
def test_x1_a_hook_is_told_of_the_session_of_its_agent_in_that_folder(
    backburner: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BACKBURNER_SESSION")
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        session = session_name("claude-code", str(folder))
        backburner("run", "--session", session, "--id", folder.name, "--wait", "--", "true")
    backburner("run", "--id", "mine", "--wait", "--", "true")
    told = backburner("signals", "--hook", "claude-code", stdin=json.dumps({"cwd": str(here)}))
    text = told.json["hookSpecificOutput"]["additionalContext"]
    assert "(here)" in text
    assert "(mine)" in text
    assert "(there)" not in text


@pytest.mark.slow
def test_x3_what_a_hook_prints_is_bounded_and_the_rest_comes_with_the_next(
    backburner: Program,
) -> None:
    with sync.Backburner.open() as open_one:
        session = open_one.session("test")
        tasks = [session.run("true", title="x" * 190) for _ in range(60)]
        for task in tasks:
            task.wait(60)
    seen = ""
    for _ in range(3):
        told = backburner("signals", "--hook", "plain")
        assert len(told.out) <= 9_000
        seen += told.out
    assert all(seen.count(f"({task.id})") == 1 for task in tasks)


def test_an_unknown_agent_is_refused_with_the_known_ones(backburner: Program) -> None:
    refused = backburner("signals", "--hook", "emacs")
    assert refused.code == 2
    assert "claude-code, codex, cursor" in refused.err
    mixed = backburner("signals", "--hook", "codex", "--follow")
    assert (mixed.code, mixed.out) == (2, "")


def test_a_hook_makes_no_home(backburner: Program, tmp_path: Path) -> None:
    told = backburner("signals", "--home", str(tmp_path / "none"), "--hook", "codex")
    assert (told.code, told.out, told.err) == (0, "", "")
    assert not (tmp_path / "none").exists()


def test_a_hook_does_not_load_the_mcp_library() -> None:
    code = "import sys; import backburner.mcp.hooks; assert 'mcp' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
