"""X5: what one line of a job's report says; whatever it says, it is understood or refused."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backburner.model.limits import QUESTION_MAX_CHARS, RESULT_MAX_BYTES, STATUS_MAX_CHARS
from backburner.model.task import Progress
from backburner.work.report import (
    Addition,
    Advance,
    Ask,
    Item,
    Mistake,
    Outcome,
    Status,
    Withdrawal,
    parse,
)


def said(document: Any) -> Item:
    return parse(json.dumps(document).encode())


def test_x5_every_kind_of_line() -> None:
    assert said({"status": "compiling"}) == Status("compiling")
    assert said({"progress": {"current": 3}}) == Advance(Progress(3))
    assert said(
        {"progress": {"current": 3.5, "total": 10, "unit": "files", "label": "main.c"}}
    ) == Advance(Progress(3.5, 10, "files", "main.c"))
    assert said({"progress": {"current": 0, "total": None, "unit": None, "label": ""}}) == Advance(
        Progress(0)
    )
    assert said({"result": {"passed": 42}}) == Outcome({"passed": 42}, 13)
    assert said({"result": None}) == Outcome(None, 4)
    assert said({"artifact": "app.tar.gz"}) == Addition("app.tar.gz")
    assert said({"ask": {"id": "q-1", "question": "Why?\nReally?"}}) == Ask("q-1", "Why?\nReally?")
    assert said({"withdraw": "q-1"}) == Withdrawal("q-1")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"", "json"),
        (b"garbage", "json"),
        (b'{"status": "x"', "json"),
        (b'{"status": "x"}{"status": "y"}', "json"),
        (b'{"status": "\xff"}', "json"),
        (b'{"result": NaN}', "json"),
        (b'{"result": -Infinity}', "json"),
        (b'{"result": ' + b"9" * 5000 + b"}", "json"),
        (b'{"result": ' + b"[" * 100_000, "json"),
        (b"\0" * 1000, "json"),
        (b"[]", "object"),
        (b"7", "object"),
        (b"{}", "object"),
        (b'{"status": "x", "result": 1}', "object"),
        (b'{"frob": 1}', "key"),
        (b'{"status": 1}', "status"),
        (b'{"status": null}', "status"),
        (b'{"result": 1e999}', "result"),
        (b'{"result": ' + b"[" * 300 + b"1" + b"]" * 300 + b"}", "result depth"),
        (b'{"progress": 3}', "progress"),
        (b'{"progress": {}}', "progress"),
        (b'{"progress": {"current": -1}}', "progress"),
        (b'{"progress": {"current": "3"}}', "progress"),
        (b'{"progress": {"current": true}}', "progress"),
        (b'{"progress": {"current": 1e999}}', "progress"),
        (b'{"progress": {"current": 1e16}}', "progress"),
        (b'{"progress": {"current": 1, "total": 0}}', "progress"),
        (b'{"progress": {"current": 1, "total": -5}}', "progress"),
        (b'{"progress": {"current": 1, "unit": 5}}', "progress"),
        (b'{"progress": {"current": 1, "more": 5}}', "progress"),
        (b'{"artifact": ""}', "artifact"),
        (b'{"artifact": ".."}', "artifact"),
        (b'{"artifact": "../../etc/passwd"}', "artifact"),
        (b'{"artifact": "a\\nb"}', "artifact"),
        (b'{"artifact": ["a"]}', "artifact"),
        (b'{"ask": "why?"}', "ask"),
        (b'{"ask": {"id": "../x", "question": "?"}}', "ask"),
        (b'{"ask": {"id": "", "question": "?"}}', "ask"),
        (b'{"ask": {"id": "' + b"q" * 65 + b'", "question": "?"}}', "ask"),
        (b'{"ask": {"id": "q", "question": "  "}}', "ask"),
        (b'{"ask": {"id": "q"}}', "ask"),
        (b'{"withdraw": {"id": "q"}}', "withdraw"),
    ],
    ids=lambda value: value[:40].decode("ascii", "replace") if isinstance(value, bytes) else None,
)
def test_x5_what_is_wrong_is_told_in_a_sentence(line: bytes, kind: str) -> None:
    item = parse(line)
    assert isinstance(item, Mistake)
    assert item.kind == kind
    assert item.text.startswith("report: ")
    assert item.text.isprintable()
    assert len(item.text) < 200


def test_x5_texts_are_one_line_without_controls_and_not_endless() -> None:
    assert said({"status": " a\tb\n\x1b[31mc\x07 \ud800"}) == Status("a b [31mc")
    long = said({"status": "x" * 100_000})
    assert isinstance(long, Status)
    assert len(long.text) == STATUS_MAX_CHARS
    assert long.text.endswith("…")
    asked = said({"ask": {"id": "q", "question": "a\x1bb\n" + "y" * 100_000}})
    assert isinstance(asked, Ask)
    assert asked.text.startswith("a b\ny")
    assert len(asked.text) == QUESTION_MAX_CHARS


def test_x5_a_result_has_a_limit() -> None:
    assert isinstance(said({"result": "x" * (RESULT_MAX_BYTES - 2)}), Outcome)
    refused = said({"result": "x" * (RESULT_MAX_BYTES - 1)})
    assert isinstance(refused, Mistake)
    assert "1024 KiB" in refused.text
    assert "artifact" in refused.text, "the remedy"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
keys = st.sampled_from(["status", "progress", "result", "artifact", "ask", "withdraw", "x"])


@given(
    st.binary() | st.dictionaries(keys, anything, max_size=2).map(lambda d: json.dumps(d).encode())
)
@example(b'{"result": "\\ud800"}')
def test_x5_no_line_can_do_harm(line: bytes) -> None:
    item = parse(line)
    if isinstance(item, Outcome):
        assert json.loads(json.dumps(item.value, allow_nan=False)) == item.value
