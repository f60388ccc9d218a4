"""A server in the event loop of the test, and a client of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backburner.serve import Binding, serving
from tests.serve.client import Api, holding


@pytest.fixture
def binding() -> Binding:
    """How the server of the test listens; a test may say otherwise."""
    return Binding(port=0)


@pytest.fixture
async def api(home: Path, binding: Binding) -> AsyncIterator[Api]:
    async with holding(home) as backburner, serving(backburner, binding) as server:
        api = Api(backburner, server)
        yield api
        await api.close()
