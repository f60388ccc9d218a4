"""C4: from a reference to a function."""

import os

import pytest

from backburner import UsageError
from backburner.work.child.finding import CannotBeFound, check_reference, find


def test_c4_a_reference_names_a_module_and_something_in_it() -> None:
    assert check_reference("os.path:join") == ("os.path", "join")
    assert find("os.path:join") is os.path.join
    assert find("collections:OrderedDict.fromkeys")("ab") is not None


@pytest.mark.parametrize("reference", ["os", "os:", ":x", "os:path join", "o s:x", "__main__:x"])
def test_c4_what_is_written_in_another_way_is_refused(reference: str) -> None:
    with pytest.raises(UsageError):
        check_reference(reference)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("os.no_such:x", "there is no module 'os.no_such'"),
        ("os:no_such", "module 'os' has no function 'no_such'"),
        ("os:sep", "os:sep is not a function"),
        ("tests.work.child.broken:x", "cannot be imported: ZeroDivisionError"),
    ],
)
def test_c4_what_is_not_there_is_said_in_a_sentence(reference: str, message: str) -> None:
    with pytest.raises(CannotBeFound, match=message):
        find(reference)
