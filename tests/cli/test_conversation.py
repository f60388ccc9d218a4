"""E12, D8, C3 on the command line: `tell`, `ask --schema`, `send` of messages, `session --end`."""

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@pytest.fixture
def report(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As in a job, whose keeper is not there."""
    folder = home / "tasks" / "bg_x.1"
    folder.mkdir(parents=True)
    monkeypatch.setenv("BACKBURNER_TASK_ID", "bg_x")
    monkeypatch.setenv("BACKBURNER_REPORT", str(folder / "report"))
    return folder / "report"


def test_e12_tell_adds_a_line(backburner: Program, report: Path) -> None:
    assert backburner("tell", 'half "is"\ndone').code == 0
    assert json.loads(report.read_text()) == {"tell": 'half "is"\ndone'}
    assert json.loads(backburner("tell", "--json", "more").out) == {"tell": "more", "in_job": True}


def test_e12_tell_outside_of_a_job_does_no_harm(backburner: Program, home: Path) -> None:
    told = backburner("tell", "half")
    assert (told.code, told.out, told.err) == (0, "", "backburner: not in a job; tell: half\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tell", " "), "there is nothing to tell"),
        (("tell", "x" * 8001), "longer than 8000 characters"),
        (("ask", "--schema", "{", "?"), "--schema: that is no JSON"),
        (("ask", "--schema", "3", "?"), "--schema: a schema is an object"),
        (("ask", "--schema", '{"$ref": "http://x"}', "?"), "names something elsewhere"),
        (("session", "--keep"), "--keep goes with --end"),
        (("session", "--end", "--quiet"), "do not go together"),
    ],
)
def test_e12_mistakes_are_explained(
    backburner: Program, report: Path, words: tuple[str, ...], said: str
) -> None:
    refused = backburner(*words)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err
    assert not report.exists()


def test_d8_a_session_ends_and_is_back(backburner: Program, home: Path) -> None:
    assert backburner("run", "--wait", "--", "true").code == 0
    ended = backburner("session", "--end")
    assert ended.out == "test has ended: it is told nothing until something starts in it\n"
    (signal,) = json.loads(backburner("signals", "--json").out)
    assert (signal["state"], signal["reason"]) == ("dropped", "the session was deleted")
    assert json.loads(backburner("session", "--json").out)["ended"] is True
    assert backburner("run", "--wait", "--", "true").code == 0
    assert backburner("session").out == "test is told: everything\n"


def test_e12_send_says_what_it_sent(backburner: Program, home: Path) -> None:
    from backburner.sync import Backburner

    with Backburner.open(home) as bb:
        task = bb.session("test").call("tests.runtime.functions:echo_messages", {"count": 1})
        sent = json.loads(backburner("send", "--json", task.id, "hello").out)
        assert sent == {"task": task.id, "sent": "message", "question": None}
        assert task.wait(60).result == ["hello"]


def test_e12_a_wrong_answer_is_refused_with_what_would_fit(backburner: Program, home: Path) -> None:
    from backburner.sync import Backburner

    with Backburner.open(home) as bb:
        task = bb.session("test").call("tests.runtime.functions:pick")
        wait_until(lambda: task.refresh().record.question)
        shown = backburner("show", task.id).out
        assert 'How many? [JSON that fits {"type":"integer","minimum":1}]' in shown
        refused = backburner("send", task.id, "many")
        assert refused.code == 2
        assert "'many' is not of type 'integer'" in refused.err
        assert '{"type":"integer","minimum":1}' in refused.err
        assert backburner("send", task.id, "2").code == 0
        assert task.wait(60).result == 2
