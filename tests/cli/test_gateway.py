"""`backburner gateway` as a command: its help, what it refuses, and tokens that no job sees."""

import subprocess
import sys

import pytest

from backburner.cli.commands.gateway import VERBS
from tests.cli.golden import Golden
from tests.cli.program import Program

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(
    backburner: Program, golden: Golden, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = backburner("gateway", verb, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert f"backburner gateway {verb}" in shown.out.partition("Examples:")[2]
    golden.check(f"help-gateway-{verb}", shown.out, exact=True)


def test_what_a_chat_has_no_use_for_is_refused(backburner: Program) -> None:
    for options, reason in ((["--json"], "for people"), (["--session", "s"], "session of its own")):
        done = backburner("gateway", "telegram", *options)
        assert (done.code, done.out) == (2, "")
        assert reason in done.err
    done = backburner("gateway", "telegram", "--folder", "/nowhere/at/all")
    assert "is no folder" in done.err
    assert "Europe/Berlin" in backburner("gateway", "telegram", "--tz", "Berlin").err
    for who in ("*", "@alice", "telegram:1", "1,two words"):
        assert "is no id" in backburner("gateway", "telegram", "--allow", who).err


def test_a_token_is_taken_out_of_the_environment_as_the_kernel_shows_it() -> None:
    """Jobs of the same user can read the environment of the gateway in /proc."""
    program = """
import os
from backburner.gateway.tokens import taken
assert taken() == {"TELEGRAM_BOT_TOKEN": "123:secret", "SLACK_APP_TOKEN": "xapp-secret"}
assert taken() == {}
assert "TELEGRAM_BOT_TOKEN" not in os.environ
for path in ("/proc/self/environ", f"/proc/{os.getpid()}/environ"):
    shown = open(path, "rb").read()
    assert b"secret" not in shown, shown
    assert b"OTHER=stays" in shown
"""
    environment = {
        "TELEGRAM_BOT_TOKEN": "123:secret",
        "OTHER": "stays",
        "SLACK_APP_TOKEN": "xapp-secret",
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_owner_of_the_home_sees_what_a_chat_could_not_be_told(
    backburner: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B6: BACKBURNER_OWNER and --session name a chat."""
    monkeypatch.setenv("BACKBURNER_OWNER", "telegram:7")
    backburner("run", "--session", "telegram:7", "--cwd", "/nowhere", "--", "true")
    signals = backburner("signals", "--session", "telegram:7", "--json").json
    assert [each["state"] for each in signals] == ["pending"]
    assert backburner("ls", "--all-sessions", "-a", "--json").json[0]["owner"] == "telegram:7"
    monkeypatch.delenv("BACKBURNER_OWNER")
    assert backburner("signals", "--session", "telegram:7", "--json").json == []
