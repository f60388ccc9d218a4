"""What the tests of the view share: an open home."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.cli.top import bar


@pytest.fixture(autouse=True)
def lasting_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a notice is about may take longer to be seen than a notice usually stands there."""
    monkeypatch.setattr(bar, "_NOTICE_S", 600)


@pytest.fixture
async def opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Backburner]:
    """The home of the test, open in this process; its jobs are stopped afterwards."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    async with Backburner.open() as backburner:
        yield backburner
        for name in ("test", "other"):
            for task in await backburner.session(name).tasks(limit=500):
                if not task.state.terminal:
                    await task.stop(force=True)
