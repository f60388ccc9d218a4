"""What the tests of the adapters share."""

import pytest

from tests.adapters.programs import PYTHON


@pytest.fixture(scope="session")
def frameworks() -> None:
    """They are installed, in an environment of their own."""
    if not PYTHON.exists():
        pytest.fail("the frameworks are missing: run `make adapters`")
