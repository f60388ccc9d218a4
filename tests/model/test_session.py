"""Names of sessions and owners."""

import pytest

from backburner.model.errors import UsageError
from backburner.model.session import NAME_MAX_BYTES, check_name


def test_promise_2_a_name_that_no_record_gives_back_is_refused() -> None:
    check_name("ä" * (NAME_MAX_BYTES // 2))
    for name in ("ä" * (NAME_MAX_BYTES // 2) + "x", "a\0b", "\udcff"):
        with pytest.raises(UsageError):
            check_name(name)
