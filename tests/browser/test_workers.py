"""The page of the workers on a record of many machines (issue 7, X10)."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from backburner.model.home import shared_home
from tests import postgres_server
from tests.browser.dashboard import PATIENCE, Dashboard
from tests.browser.test_view import serious
from tests.cli.program import Program
from tests.nodes.workers import WorkerProcess
from tests.nursery import Nursery

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

expect.set_options(timeout=PATIENCE)


@pytest.fixture
def address(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of an empty record; the folders that belong to it are in the home of the test."""
    server = postgres_server.server()
    made = server.create()
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setenv("BACKBURNER_HOME", made)
    yield made
    server.drop(made)


@pytest.fixture
def worker(address: str, new_home: Callable[[], Path]) -> Iterator[WorkerProcess]:
    """It takes one queue, and has places for two."""
    started = WorkerProcess(address, new_home(), "--queue", "build", "--concurrency", "2")
    yield started
    started.leave()


@pytest.fixture
def dashboard(address: str, new_dashboard: Callable[..., Dashboard]) -> Dashboard:
    """Of that record."""
    return new_dashboard(Path(shared_home(address).root))


def test_x10_who_is_there_what_they_take_and_what_waits(
    dashboard: Dashboard, worker: WorkerProcess, nursery: Nursery, tmp_path: Path, axe: str
) -> None:
    backburner, go = Program(nursery), tmp_path / "go"
    for queue in ("build", "gpu"):
        assert backburner("queue", "set", queue, "--width", "1").code == 0
    runs, waits = (
        dashboard.run(f"until [ -e {go} ]; do sleep 0.05; done", queue="build") for _ in range(2)
    )
    in_vain = dashboard.run("true", queue="gpu")
    dashboard.wait_for(runs, "running")

    page = dashboard.page("/workers")
    everybody = page.locator("[data-worker]")
    expect(everybody).to_have_count(2)  # the server is an application, with the tools of its own
    expect(everybody.filter(has_text="Application: At work")).to_have_count(1)
    row = everybody.filter(has_not_text="Application:")
    expect(row.locator(".name")).to_have_text(socket.gethostname())
    expect(row).to_contain_text("At work")
    expect(row.locator(".tag")).to_have_text(["build"])
    expect(row.locator(".load")).to_have_text("1 of 2")
    expect(row.locator(".heard")).to_contain_text("heard")
    expect(row.get_by_role("link")).to_have_text([runs])
    expect(page.get_by_text("2 workers and applications at work.")).to_be_visible()
    lines = {name: page.locator(f"[data-queue={name}]") for name in ("build", "gpu")}
    numbers = {name: line.locator(".number") for name, line in lines.items()}
    # At once, running, waiting, workers.
    expect(numbers["build"]).to_have_text(["1", "1", "1", "1"])
    expect(numbers["gpu"]).to_have_text(["1", "0", "1", "0"])
    expect(lines["build"].locator(".state")).to_have_text("open")
    expect(lines["gpu"].locator(".state")).to_have_text("no worker takes it")
    phone = dashboard.page("/workers", viewport={"width": 360, "height": 740}, has_touch=True)
    expect(phone.locator("[data-worker]")).to_have_count(2)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    assert serious(page, axe) == []

    # What ends and begins is seen without being asked for again; so is a worker that leaves.
    go.touch()
    dashboard.wait_for(waits, "succeeded")
    expect(numbers["build"]).to_have_text(["1", "0", "0", "1"])
    expect(row.locator(".load")).to_have_text("0 of 2")
    worker.leave()
    expect(row).to_have_count(0)
    expect(page.get_by_text("1 worker or application at work.")).to_be_visible()
    expect(numbers["build"]).to_have_text(["1", "0", "0", "0"])
    assert dashboard.state(in_vain) == "queued"
