"""`channel`, `session`, `signals --failed` and `--resend`, as a person meets them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from backburner.cli import main
from backburner.cli.commands.channel import VERBS
from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.receiver import Receiver, receiver
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(
    backburner: Program, golden: Golden, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = backburner("channel", verb, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert f"backburner channel {verb}" in shown.out.partition("Examples:")[2]
    for option in ("--home", "--session", "--json"):
        assert option in shown.out
    golden.check(f"help-channel-{verb}", shown.out, exact=True)


def test_x1_channels_are_added_tried_listed_and_removed(
    backburner: Program, golden: Golden, tmp_path: Path, server: Receiver
) -> None:
    assert backburner("channel", "ls").err == "backburner: no channels\n"
    assert backburner("channel", "ls", "--json").json == []
    log = tmp_path / "log"
    added = backburner("channel", "add", "log", "--command", f"cat >>{log}", "--all-sessions")
    assert (added.code, added.out, added.err) == (0, "", "")
    url = server.url("/ok?token=abc")
    kinds = ("--kind", "failed", "--kind", "ready")
    web = backburner("channel", "add", "web", "--webhook", url, "--allow-private", *kinds)
    assert web.out.startswith("whsec_")
    assert web.err == (
        "backburner: the channel web signs with this key, which is not shown again\n"
    )
    document = backburner(
        "channel", "add", "bad", "--command", "echo 'password: hunter2'; exit 7", "--json"
    ).json
    assert document["name"] == "bad"
    assert "secret" not in document
    listed = backburner("channel", "ls").out.replace(str(server.port), "PORT")
    golden.check("channel-ls", listed)
    assert "token" not in backburner("channel", "ls", "--json").out
    tried = backburner("channel", "test", "web")
    assert (tried.code, tried.out, tried.err) == (0, "delivered\n", "")
    assert server.received[0].verified(web.out.strip())["type"] == "backburner.task.completed"
    failed = backburner("channel", "test", "bad")
    assert (failed.code, failed.out) == (1, "")
    assert failed.err == "backburner: not delivered: exit code 7: password: [redacted]\n"
    told = backburner("channel", "test", "bad", "--json")
    assert (told.code, told.json["delivered"]) == (1, False)
    assert backburner("channel", "rm", "log").code == 0
    assert backburner("channel", "rm", "web", "--json").json == {"name": "web", "removed": True}
    assert [each["name"] for each in backburner("channel", "ls", "--json").json] == ["bad"]


def test_channel_errors(
    home: Path,
    golden: Golden,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def in_process(line: str) -> str:
        """The same program without a process of its own: there are many of these."""
        monkeypatch.setattr("sys.argv", ["backburner", *line.split()])
        status = main()
        out, err = capsys.readouterr()
        assert out == ""
        return f"$ backburner {line}\n{err}[{status}]\n"

    in_process("channel add taken --command true")
    lines = (
        "channel",
        "channel frob",
        "channel add",
        "channel add x",
        "channel add x --command true --desktop",
        "channel add inbox --command true",
        "channel add a/b --command true",
        "channel add taken --command true",
        "channel add x --command true --kind bad",
        "channel add x --webhook mailto:ada@example.com",
        "channel add x --webhook http://10.1.2.3/",
        "channel add x --command true --allow-private",
        "channel rm nobody",
        "channel test nobody",
        "channel resume nobody",
        "session --quiet --everything",
        "session --only",
        "session --only=",
        "session --only failed,bad",
        "signals --failed --ack",
        "signals --resend all --follow",
        "signals --resend nothing:end@nobody",
    )
    golden.check("errors-channel", "\n".join(map(in_process, lines)), exact=True)


def test_x1_what_failed_is_listed_and_sent_again(
    backburner: Program, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given up after 6 tries within a second; the other one waits long for its second.
    monkeypatch.setenv("BACKBURNER_DELIVERY_RETRY_S", "0.0005")
    backburner("channel", "add", "mail", "--command", f"echo no route; test -e {tmp_path}/up")
    none = backburner("signals", "--failed")
    assert none.err == "backburner: no failed deliveries in session 'test'\n"
    backburner("run", "--id", "first", "--wait", "--", "true")

    def states() -> list[str]:
        return [each["state"] for each in backburner("signals", "--failed", "--json").json]

    wait_until(lambda: states() == ["dropped"])
    golden.check("signals-failed", backburner("signals", "--failed").out)
    (letter,) = backburner("signals", "--failed", "--json").json
    assert (letter["key"], letter["channel"], letter["tries"]) == ("first:end@mail", "mail", 6)
    # The inbox knows nothing of it.
    assert [each["key"] for each in backburner("signals", "--json").json] == ["first:end"]
    assert backburner("signals", "--ack").err == "backburner: 1 acknowledged\n"
    (tmp_path / "up").touch()
    assert backburner("signals", "--resend", "first:end@mail").out == "1 sent again\n"
    # It is no failed one from the moment on at which it is to be sent again.
    wait_until(lambda: "completed through mail, delivered" in backburner("show", "first").out)
    assert states() == []
    assert backburner("signals", "--resend", "all", "--json").json == {"resent": []}


def test_x1_a_channel_whose_receiver_is_gone_is_paused_and_resumed(
    backburner: Program, golden: Golden, server: Receiver
) -> None:
    server.answer = 410
    backburner("channel", "add", "web", "--webhook", server.url(), "--allow-private")
    backburner("run", "--id", "first", "--wait", "--", "true")
    wait_until(lambda: backburner("channel", "ls", "--json").json[0]["paused"])
    backburner("run", "--id", "second", "--wait", "--", "true")
    refused = backburner("signals", "--resend", "all")
    listed = backburner("channel", "ls")
    text = f"{refused.out}{refused.err}[{refused.code}]\n{listed.out}{listed.err}"
    golden.check("channel-paused", text.replace(str(server.port), "PORT"))
    server.answer = None
    assert backburner("channel", "resume", "web").code == 0
    again = backburner("channel", "resume", "web")
    assert again.err == "backburner: the channel web is not paused\n"
    assert backburner("signals", "--resend", "all").out == "2 sent again\n"
    server.wait_for(3)
    assert [got.key for got in server.received] == [
        "first:end@web",
        "first:end@web",
        "second:end@web",
    ]


def test_a_session_says_what_it_wishes_to_be_told(backburner: Program, tmp_path: Path) -> None:
    assert backburner("session").out == "test is told: everything\n"
    assert backburner("session", "--quiet").out == "test is told: nothing\n"
    backburner("channel", "add", "log", "--command", f"cat >>{tmp_path}/log")
    backburner("run", "--id", "quiet", "--wait", "--", "exit 3")
    (signal,) = backburner("signals", "--json").json
    assert (signal["state"], signal["reason"]) == (
        "dropped",
        "the session does not wish to be told",
    )
    only = backburner("session", "--only", "failed, input_required", "--json")
    assert only.json == {
        "session": "test",
        "ended": False,
        "told": ["failed", "input_required"],
    }
    backburner("run", "--id", "good", "--wait", "--", "true")
    backburner("run", "--id", "bad", "--wait", "--", "exit 3")
    assert backburner("session", "--session", "other").out == "other is told: everything\n"
    assert backburner("session", "--everything", "--json").json["told"] is None
    log = tmp_path / "log"
    wait_until(log.exists)
    wait_until(lambda: log.read_text().endswith("\n"))
    assert [json.loads(line)["task"] for line in log.read_text().splitlines()] == ["bad"]


def test_a_notification_on_request(
    backburner: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    refused = backburner("run", "--notify", "--", "true")
    assert (refused.code, refused.out) == (2, "")
    assert "notify-send" in refused.err
    assert "libnotify" in refused.err
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$4: $5" >{tmp_path}/shown\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    backburner("run", "--id", "loud", "--title", "loud", "--notify", "--wait", "--", "exit 3")
    shown = tmp_path / "shown"
    wait_until(lambda: shown.exists() and shown.read_text())
    assert shown.read_text().startswith("Task failed: loud (loud) failed: exit code 3")
    assert backburner("show", "loud", "--json").json["signals"][1]["channel"] == "notify"
    assert os.listdir(tmp_path).count("shown") == 1
