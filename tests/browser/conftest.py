"""One browser for the tests of this folder; for each test a home, a server and a page."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.dashboard import Dashboard
from tests.conftest import REPOSITORY


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Debian's chromium. It knows nothing of the environment of a test.

    Not for the whole session: while Playwright is there, its event loop counts as running, and no
    asynchronous test of another folder could be.
    """
    program = shutil.which("chromium")
    if program is None:
        pytest.fail("chromium is missing: run scripts/browser.sh, or install that package")
    if not (REPOSITORY / "src/backburner/serve/static/index.html").exists():
        pytest.fail("the dashboard is not built: run `make dashboard`")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path_factory.mktemp("chromium"))}
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=program, env=dict[str, str | float | bool](environment)
        )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The program that looks for what a screen reader could not make sense of."""
    path = REPOSITORY / "web/node_modules/axe-core/axe.min.js"
    if not path.exists():
        pytest.fail("axe-core is missing: run `make dashboard`")
    return path.read_text()


@pytest.fixture
def new_dashboard(home: Path, browser: Browser) -> Iterator[Callable[..., Dashboard]]:
    """Serves the home of the test, with variables; what a page complains of fails the test.

    ``own`` is the folder with the token, where the record is not in that home.
    """
    made: list[Dashboard] = []

    def make(own: Path = home, **variables: str) -> Dashboard:
        made.append(Dashboard(own, browser, variables))
        return made[-1]

    yield make
    for each in made:
        each.close()
    for each in made:
        assert each.complaints == []


@pytest.fixture
def dashboard(new_dashboard: Callable[..., Dashboard]) -> Dashboard:
    """Served as it comes."""
    return new_dashboard()
