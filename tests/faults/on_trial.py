"""What a run in namespaces can come to; `test_apart.py` runs this."""

from collections.abc import Callable

import pytest


def test_that_passes(record_property: Callable[[str, object], None]) -> None:
    record_property("done by", "hand")


def test_that_is_skipped() -> None:
    pytest.skip("LOUD: this cannot be tried here")


def test_that_fails() -> None:
    pytest.fail("that is wrong")
