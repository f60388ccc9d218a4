"""Takes the pictures of docs/screenshots: a home with real jobs, a real server, a real browser.

Run it with `make screenshots`. The jobs take seconds; so that the time line has something to show,
the record of this home, which is removed afterwards, is given a past.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import apsw
from playwright.async_api import Browser, Page, async_playwright

from backburner import AgentAnswer, AgentRequest, Backburner, Context, Task

OUT = Path(__file__).resolve().parent.parent / "docs" / "screenshots"
MINUTE = 60 * 1_000_000

TESTS = r"""
say() { echo "$1" >>"$BACKBURNER_REPORT"; }
printf '\033[1m======================= test session starts =======================\033[0m\n'
printf 'platform linux -- Python 3.13.1, pytest-9.0.1\ncollected 480 items\n\n'
for i in $(seq 1 310); do
  printf 'tests/test_orders.py::test_case_%03d \033[32mPASSED\033[0m ' $i
  printf ' \033[36m[%3d%%]\033[0m\n' $((i * 100 / 480))
  [ $i = 297 ] && printf 'tests/test_orders.py::test_refund_twice \033[31mFAILED\033[0m\n'
  say "{\"progress\": {\"current\": $i, \"total\": 480, \"unit\": \"tests\"}}"
done
while :; do timeout 0.$((RANDOM % 9 + 1)) sh -c 'while :; do :; done'; sleep 0.1; done
"""
BROKEN = "echo '==> linking'; echo 'ld: undefined reference to `inflateEnd`' >&2; exit 2"
DEV = "echo 'VITE v8.3.5  ready in 412 ms'; echo; echo '  Local: http://localhost:5173/'; sleep 600"
DEPLOY = """
echo '✓ image built: shop/checkout:2.4.1'
echo '✓ 480 tests passed'
cat >>"$BACKBURNER_REPORT" <<END
{"ask": {"id": "q1", "question": "Deploy checkout 2.4.1 to production?", \
"schema": {"enum": ["deploy", "wait", "cancel"]}}}
END
sleep 600
"""
IMPORT = """
cat >>"$BACKBURNER_REPORT" <<END
{"status": "reading orders-2026-11.csv"}
{"progress": {"current": 61400, "total": 96000, "unit": "rows", "label": "orders"}}
END
sleep 600
"""

# session, title, command, began so many minutes ago, took so many minutes
PAST: list[tuple[str, str, str, float, float]] = [
    ("checkout", "make build", "echo built", 338, 11),
    ("checkout", "make test", "echo 480 passed", 322, 24),
    ("checkout", "make build", BROKEN, 231, 7),
    ("checkout", "make build", "echo built", 214, 12),
    ("checkout", "make test", "echo 479 passed, 1 failed; exit 1", 198, 25),
    ("checkout", "docker build -t shop/checkout .", "echo pushed", 121, 19),
    ("nightly", "pg_dump shop | zstd > shop.zst", "echo done", 352, 38),
    ("nightly", "restic backup /srv", "echo snapshot saved", 301, 64),
    ("nightly", "vacuum analyze", "echo done", 226, 17),
    ("nightly", "sync invoices to archive", "echo 'connect: timed out'; exit 28", 150, 31),
    ("docs", "mkdocs build --strict", "echo built", 266, 4),
    ("docs", "check links", "echo 2 broken; exit 1", 258, 21),
    ("docs", "mkdocs build --strict", "echo built", 94, 5),
    ("research", "download arXiv 2026-11", "echo 4120 papers", 183, 72),
]


async def story(bb: Backburner, home: Path) -> dict[str, str]:
    """Starts everything; answers ids by name."""
    past: list[tuple[Task, float, float]] = []
    for session, title, command, ago, took in PAST:
        task = await bb.session(session).run(command, title=title)
        past.append((task, ago, took))
    for task, _, _ in past:
        await task.wait(60)
    slow = await bb.session("nightly").run(
        "sleep 60", title="rebuild search index", max_runtime=0.2
    )
    await slow.wait(60)
    stopped = await bb.session("docs").run("sleep 600", title="mkdocs serve")
    await stopped.stop()
    checkout = bb.session("checkout")
    tests = await checkout.run(TESTS, title="pytest tests/ -q", separate_stderr=False)
    deploy = await checkout.run(DEPLOY, title="deploy checkout 2.4.1")
    dev = await checkout.run(DEV, title="npm run dev", ready_output="ready in")
    load = await bb.session("nightly").run(IMPORT, title="import orders-2026-11.csv")
    await bb.set_queue("gpu", 1)
    train = await bb.session("research").run("sleep 600", title="train ranker, fold 1", queue="gpu")
    await bb.session("research").run("sleep 600", title="train ranker, fold 2", queue="gpu")

    async def reviewer(request: AgentRequest, context: Context) -> AgentAnswer:
        context.status("reading 14 changed files")
        await request.session.run("sleep 600", title="git diff main...release/2.4")
        await asyncio.Event().wait()
        return AgentAnswer("")

    bb.agent("reviewer", reviewer)
    asked = await bb.session("research").ask(
        "Review the release branch for risky changes", agent="reviewer"
    )
    await bb.session("nightly").schedule("0 3 * * *", "restic backup /srv", tz="Europe/Berlin")
    await bb.session("docs").schedule("*/30 9-18 * * 1-5", "check links", tz="UTC")
    for each, kind in ((deploy, "asked"), (load, "progress"), (asked, "detail")):
        async for event in each.events():
            if event.kind == kind:
                break
    times: list[tuple[str, float, float | None]] = [
        (task.id, ago, took) for task, ago, took in past
    ]
    times += [(slow.id, 66, 30), (stopped.id, 88, 62)]
    times += [(tests.id, 6.2, None), (deploy.id, 14, None)]
    times += [(dev.id, 97, None), (load.id, 23, None), (train.id, 51, None), (asked.id, 9, None)]
    backdate(home, times)
    return {"tests": tests.id, "failed": past[2][0].id, "deploy": deploy.id}


def backdate(home: Path, times: list[tuple[str, float, float | None]]) -> None:
    """Let tasks have begun earlier, and those that have ended take longer."""
    record: Any = apsw.Connection(str(home / "backburner.db"))
    record.set_busy_timeout(10_000)
    for task, ago, took in times:
        row = record.execute("SELECT seq, created_at, finished_at FROM task WHERE id = ?", (task,))
        seq, created, finished = next(iter(row))
        back = int(ago * MINUTE)
        longer = (
            0 if took is None or finished is None else int(took * MINUTE) - (finished - created)
        )
        record.execute(
            "UPDATE task SET created_at = created_at - :back, started_at = started_at - :back,"
            " finished_at = finished_at - :back + :longer WHERE seq = :seq",
            {"back": back, "longer": longer, "seq": seq},
        )
        record.execute(
            "UPDATE event SET at = at - :back + iif(kind = 'finished', :longer, 0)"
            " WHERE task = :seq",
            {"back": back, "longer": longer, "seq": seq},
        )
        record.execute(
            "UPDATE signal SET created_at = created_at - :back + :longer WHERE task = :seq",
            {"back": back, "longer": longer, "seq": seq},
        )
    record.close()


@contextmanager
def served() -> Generator[dict[str, str]]:
    """A server of the home that the environment names."""
    command = [sys.executable, "-m", "backburner.cli", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())
        finally:
            server.terminate()


@asynccontextmanager
async def looking(browser: Browser, state: Any, **options: Any) -> AsyncGenerator[Page]:
    """A page of a browser that is logged in."""
    context = await browser.new_context(storage_state=state, reduced_motion="reduce", **options)
    yield await context.new_page()
    await context.close()


SIZES: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1360, "height": 860}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1360, "height": 860}, "color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "light",
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
}


async def pictures(address: dict[str, str], ids: dict[str, str]) -> None:
    """Every place in every size."""
    places = {
        "overview": "/",
        "runs": "/runs",
        "run": f"/runs/{ids['tests']}",
        "failed": f"/runs/{ids['failed']}",
        "question": f"/runs/{ids['deploy']}",
        "sessions": "/sessions",
        "schedules": "/schedules",
    }
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(address["login"])
        await page.get_by_role("heading", name="Overview").wait_for()
        state = await context.storage_state()
        for size, options in SIZES.items():
            for name, where in places.items():
                if size != "light" and name in ("failed", "question", "sessions", "schedules"):
                    continue
                async with looking(browser, state, **options) as page:
                    if name == "overview" and size != "phone":
                        await page.set_viewport_size({"width": 1360, "height": 1240})
                    await page.goto(f"{address['url']}/#{where}")
                    await page.locator("h1").wait_for()
                    await page.wait_for_timeout(16_000 if name == "run" else 1500)
                    await page.screenshot(path=OUT / f"{name}-{size}.png")
        async with looking(browser, state, **SIZES["light"]) as page:
            await page.goto(f"{address['url']}/#/runs")
            await page.get_by_role("button", name="New run").click()
            await page.get_by_label("Command", exact=True).fill("make backup")
            await page.get_by_role("button", name="Again and again").click()
            await page.get_by_text("Next, on your clock").wait_for()
            await page.screenshot(path=OUT / "start-light.png")
        await browser.close()


async def main() -> None:
    """The whole of it, in a home of its own."""
    OUT.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="backburner-screenshots-")
    home = Path(folder)
    os.environ["BACKBURNER_HOME"] = folder
    os.chdir("/srv")  # the folder of the jobs is in the pictures
    try:
        async with Backburner.open(home) as bb:
            ids = await story(bb, home)
            with served() as address:
                await pictures(address, ids)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # the keeper sees that, and ends the jobs


if __name__ == "__main__":
    asyncio.run(main())
