"""X4 on the command line: ready, pattern, silence, `wait --for ready`, and what a person sees."""

import sys
from pathlib import Path

import pytest

from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def test_x4_wait_for_ready_exits_as_soon_as_it_is(backburner: Program) -> None:
    line = "read -r; echo listening on 80; exec sleep 60"
    backburner("run", "--id", "srv", "--stdin", "--ready-output", "listening on", "--", line)
    wait_until(lambda: "running" in backburner("ls").out)
    assert "starting" in backburner("ls").out
    up = backburner("wait", "--for", "ready", "--timeout", "0.2", "srv")
    assert (up.code, up.out) == (124, "")
    assert up.err.startswith("backburner: time is up: ")
    assert up.err.endswith(" (srv) is running, starting\n")

    backburner("send", "srv", "go")
    ready = backburner("wait", "--for", "ready", "--json", "srv")
    assert (ready.code, ready.json["state"]) == (0, "running")
    assert ready.json["ready_at"] is not None
    assert ready.err.endswith(" (srv) is running, ready\n")
    listed = backburner("ls").out.splitlines()[1].split()
    assert listed[:2] == ["srv", "running"]
    assert "ready" in listed
    backburner("stop", "srv")
    assert backburner("wait", "--for", "ready", "srv").code == 6


def test_x4_wait_for_ready_exits_with_the_code_of_one_that_ended_first(
    backburner: Program,
) -> None:
    for name, line in (("bad", "exit 3"), ("good", "true"), ("was", "echo up"), ("late", "exit 4")):
        pattern = "up" if name == "was" else "never"
        backburner("run", "--id", name, "--ready-output", pattern, "--", line)
    early = backburner("wait", "--for", "ready", "bad")
    assert (early.code, early.out) == (3, "")
    assert "failed: exit code 3 after " in early.err
    assert early.err.endswith(", before it was ready\n")
    good = backburner("wait", "--for", "ready", "good")
    assert good.code == 1
    assert good.err.endswith(", before it was ready\n")
    assert backburner("wait", "good").code == 0
    assert backburner("wait", "--for", "ready", "was").code == 0
    assert backburner("wait", "--for", "ready", "was", "late", "bad").code == 4
    backburner("run", "--id", "plain", "--", "true")
    plain = backburner("wait", "--for", "ready", "plain")
    assert plain.code == 2
    assert "plain has no condition on which it is ready" in plain.err
    assert backburner("wait", "--for", "tea", "plain").code == 2


def test_x4_run_wait_is_not_changed_by_a_condition(backburner: Program) -> None:
    done = backburner("run", "--wait", "--ready-output", "up", "--", "echo up; exit 3")
    assert (done.code, done.out) == (3, "up\n")


def test_x4_a_real_server(backburner: Program, tmp_path: Path) -> None:
    """What a person does: start it, wait for it, use it."""
    script = (
        "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler);"
        "print('port', s.server_port, flush=True); s.serve_forever()"
    )
    first = backburner(
        "run", "--cwd", str(tmp_path), "--ready-output", "^port [0-9]+$", "--",
        sys.executable, "-c", script,
    ).id  # fmt: skip
    assert backburner("wait", "--for", "ready", "--timeout", "30", first).code == 0
    port = backburner("logs", first).out.split()[1]
    address = f"http://127.0.0.1:{port}/"
    second = backburner("run", "--ready-http", address, "--", "sleep 60").id
    assert backburner("wait", "--for", "ready", "--timeout", "30", second).code == 0
    thief = backburner("run", "--ready-port", port, "--", "sleep 60").id
    assert backburner("wait", "--for", "ready", "--timeout", "0.5", thief).code == 124
    wait_until(lambda: "another program has it" in backburner("show", thief).out)
    backburner("stop", "--all")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ready-output", "("], "'(' is no pattern: missing ): ("),
        (["--match", "(?=a)"], "is no pattern"),
        (["--ready-port", "http"], "--ready-port: 'http' is no number"),
        (["--ready-port", "-1"], "--ready-port: '-1' is no number"),
        (["--ready-port", "0"], "0 is no port"),
        (["--ready-port", "99999999999999999999"], "is no port"),
        (["--ready-http", "localhost"], "'localhost' is no address to ask"),
        (["--ready-file", ""], "the path of the ready file has to be"),
        (["--silence", "soon"], "--silence: 'soon' is no duration"),
        (["--silence", "0"], "a silence of 0 s cannot be told of"),
        (["--ready-port", "80", "--ready-file", "a"], "not by port and file"),
    ],
)
def test_x4_what_makes_no_sense_is_a_usage_error(
    backburner: Program, options: list[str], said: str
) -> None:
    refused = backburner("run", *options, "--", "true")
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err
    assert "Traceback" not in refused.err
    assert backburner("ls", "-a").out == ""


def test_x4_what_show_and_signals_say(backburner: Program, golden: Golden, tmp_path: Path) -> None:
    line = r"printf '\033[32mlistening\033[0m on 80\n'; echo ERROR 1; read -r"
    backburner(
        "run", "--title", "server", "--stdin", "--ready-output", "listening on", "--cwd",
        str(tmp_path), "--match", "ERROR|WARN", "--silence", "10m", "--id", "srv", "--", line,
    )  # fmt: skip
    assert backburner("wait", "--for", "ready", "srv").code == 0
    wait_until(lambda: "ERROR 1" in backburner("signals").out)
    backburner("send", "--eof", "srv")
    assert backburner("wait", "srv").code == 1
    golden.check("ready-show", backburner("show", "srv").out)
    golden.check("ready-signals", backburner("signals").out)
    backburner("run", "--id", "early", "--cwd", str(tmp_path), "--ready-file", "up", "--", "exit 3")
    backburner("wait", "early")
    golden.check("ready-never", backburner("show", "early").out)
