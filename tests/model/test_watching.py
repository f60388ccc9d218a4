"""X4: what a task can be watched for, how it is kept, and what is refused."""

from typing import Any

import pytest

from backburner.model.ending import NEVER_READY, Ending
from backburner.model.errors import UsageError
from backburner.model.states import ErrorKind
from backburner.model.telling import end_text, how_it_ended
from backburner.model.watching import NOTHING, ReadyKind, Watching


def test_x4_nothing_to_watch_leaves_no_trace_in_the_specification() -> None:
    assert Watching.of() == NOTHING
    assert not Watching.of()
    assert NOTHING.to_spec() == {}
    assert Watching.from_spec({"command": "true"}) == NOTHING


@pytest.mark.parametrize(
    "given",
    [
        {"ready_output": "listening on"},
        {"ready_port": 8080},
        {"ready_file": "run/ready"},
        {"ready_http": "https://localhost:8443/health?deep=1"},
        {"match": "ERROR|WARN"},
        {"silence": 600.0},
        {"ready_port": 1, "match": "x", "silence": 1},
    ],
)
def test_x4_what_is_watched_for_comes_back_from_the_specification(given: dict[str, Any]) -> None:
    watching = Watching.of(**given)
    assert watching
    assert Watching.from_spec({"command": "true", **watching.to_spec()}) == watching


def test_x4_the_patterns_are_those_that_have_to_compile() -> None:
    assert Watching.of(ready_output="a", match="b").patterns == ("a", "b")
    assert Watching.of(ready_file="a", silence=5).patterns == ()
    ready = Watching.of(ready_port=80).ready
    assert ready is not None
    assert (ready.kind, ready.port) == (ReadyKind.PORT, 80)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ready_output": "a", "ready_port": 80}, "not by output and port"),
        ({"ready_file": "a", "ready_http": "http://a/", "ready_port": 1}, "one condition"),
        ({"ready_output": ""}, "not empty"),
        ({"ready_output": "x" * 2001}, "longer than 2,000"),
        ({"match": ""}, "not empty"),
        ({"match": 3}, "text"),
        ({"ready_file": ""}, "not empty"),
        ({"ready_file": "a\0b"}, "text"),
        ({"ready_port": 0}, "0 is no port"),
        ({"ready_port": 65536}, "65536 is no port"),
        ({"ready_port": -1}, "-1 is no port"),
        ({"ready_port": True}, "True is no port"),
        ({"ready_port": "80"}, "'80' is no port"),
        ({"ready_port": 80.5}, "80.5 is no port"),
        ({"ready_http": "localhost:8080"}, "no address"),
        ({"ready_http": "ftp://localhost/"}, "no address"),
        ({"ready_http": "http:///path"}, "no address"),
        ({"ready_http": "http://localhost:99999/"}, "no address"),
        ({"ready_http": "http://localhost:0/"}, "no address"),
        ({"ready_http": "http://[::1/"}, "no address"),
        ({"ready_http": "http://a/ HTTP/1.1\r\nX: y"}, "no address"),
        ({"ready_http": "http://a/ü"}, "no address"),
        ({"ready_http": "http://ada:secret@localhost/"}, "password"),
        ({"silence": 0}, "silence of 0 s"),
        ({"silence": 0.5}, "silence of 0.5 s"),
        ({"silence": -5}, "silence of -5 s"),
        ({"silence": float("nan")}, "silence of nan"),
        ({"silence": float("inf")}, "silence of inf"),
        ({"silence": "10m"}, "no number"),
    ],
)
def test_x4_what_makes_no_sense_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Watching.of(**given)


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (Ending.exited(3), "failed: exit code 3, before it was ready"),
        (Ending.exited(0), "finished, before it was ready"),
        (Ending.canceled(), "was stopped, before it was ready"),
        (Ending.failed(ErrorKind.TIMEOUT, "too long"), "timed out: too long, before it was ready"),
    ],
)
def test_x4_an_ending_before_readiness_says_so_once(ending: Ending, said: str) -> None:
    early = ending.before_ready()
    assert early.before_ready() == early
    assert how_it_ended(early) == said
    assert (early.state, early.exit_code) == (ending.state, ending.exit_code)
    sentence = end_text("server", "bg_1", early, 3_000_000)
    assert sentence.endswith(" after 3.0s, before it was ready")
    assert Ending.from_document(early.document()) == early


def test_x4_a_summary_is_kept_beside_the_word_that_it_was_too_early() -> None:
    early = Ending.succeeded(summary="3 files").before_ready()
    assert early.summary == f"3 files; {NEVER_READY}"
    assert early.before_ready() == early
