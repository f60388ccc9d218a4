"""Errors have one base, a stable code, a remedy in the text, and one table for every surface."""

import re
from collections.abc import Iterator

import pytest

from backburner.model import errors
from backburner.model.errors import SPELLINGS, Ambiguous, BackburnerError, ConnectionRequired


def descendants(cls: type[BackburnerError]) -> Iterator[type[BackburnerError]]:
    yield cls
    for child in cls.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from descendants(child)


CLASSES = list(descendants(BackburnerError))

CODES_AND_EXIT_STATUSES = {
    # The exit statuses of the contract: 1 failed, 2 usage, 3 not found, 4 not allowed, 5 limit
    # reached, 124 time is up.
    "error": 1,
    "usage": 2,
    "not_found": 3,
    "no_such_queue": 3,
    "ambiguous": 2,
    "not_allowed": 4,
    "limit": 5,
    "conflict": 2,
    "timeout": 124,
    "never_ready": 1,
    "input": 1,
    "input_not_yet": 1,
    "nobody_asked": 1,
    "arguments": 2,
    "tool": 1,
    "internal": 1,
    "connection": 4,
    "store": 1,
    "busy": 1,
    "closed": 1,
    "full": 1,
    "unusable": 1,
    "away": 1,
    "keeper": 1,
    "artifacts": 1,
}


def test_every_class_has_a_code_of_its_own_and_every_code_a_class() -> None:
    codes = [cls.code for cls in CLASSES]
    assert sorted(codes) == sorted(CODES_AND_EXIT_STATUSES)
    assert all("code" in vars(cls) for cls in CLASSES), "an inherited code tells nothing apart"


def test_every_code_is_spelled_for_every_surface() -> None:
    statuses = {code: spelling.exit_status for code, spelling in SPELLINGS.items()}
    assert statuses == CODES_AND_EXIT_STATUSES
    for spelling in SPELLINGS.values():
        assert 400 <= spelling.http_status < 600
        assert spelling.mcp_code in {-32602, -32603}  # invalid parameters, internal error


def test_who_is_to_blame_is_told_by_the_http_status() -> None:
    blamed_on_the_caller = {code for code, each in SPELLINGS.items() if each.http_status < 500}
    assert blamed_on_the_caller == {
        *("usage", "not_found", "ambiguous", "not_allowed", "limit", "conflict", "timeout"),
        *("arguments", "connection", "never_ready", "input", "input_not_yet", "nobody_asked"),
        "no_such_queue",
    }
    assert SPELLINGS["not_found"].http_status == 404
    assert SPELLINGS["not_allowed"].http_status == 403


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    drawn: list[tuple[str, str, str]] = []
    above: list[str] = []  # the class at each depth
    for line in (errors.__doc__ or "").splitlines():
        node = re.match(r"([│├└─ ]*)([A-Z]\w+)(?: +(\w+) {2,}\S.*)?$", line)
        if node is None or (" " in line.strip() and node[3] is None):
            continue
        depth = len(node[1]) // 4
        del above[depth:]
        drawn.append((node[2], above[-1] if above else "Exception", node[3] or "error"))
        above.append(node[2])
    assert sorted(drawn) == sorted(
        (cls.__name__, base.__name__, cls.code) for cls in CLASSES for base in cls.__bases__
    )


@pytest.mark.parametrize(
    "cls", [cls for cls in CLASSES if cls not in (Ambiguous, ConnectionRequired)]
)
def test_an_error_shows_its_text_and_its_remedy(cls: type[BackburnerError]) -> None:
    error = cls("no room", remedy="free some space")
    assert str(error) == "no room (free some space)"
    assert (error.message, error.remedy) == ("no room", "free some space")
    assert str(cls("no room")) == "no room"
    assert isinstance(error, BackburnerError)


def test_an_ambiguous_prefix_lists_the_candidates() -> None:
    error = Ambiguous("bg_a", ["bg_ab", "bg_ac"])
    assert error.candidates == ["bg_ab", "bg_ac"]
    assert "bg_ab, bg_ac" in str(error)
    assert "'bg_a' fits 2 tasks" in str(error)
    assert "more of the id" in str(error)
