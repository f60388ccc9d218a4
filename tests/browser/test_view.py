"""What the dashboard shows: long and hostile output, both themes, a phone, a screen reader."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.dashboard import PATIENCE, Dashboard

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

expect.set_options(timeout=PATIENCE)

LINES = 200_000

SCROLL = """
async () => {
  const box = document.querySelector('[role=log]');
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const times = [];
  let blank = 0, most = 0;
  box.scrollTop = 0;
  let before = await frame();
  for (let step = 0; step < 60; step += 1) {
    // Far and near in turn: a dragged bar, and a wheel.
    box.scrollTop += step % 2 ? 180 : box.scrollHeight / 40;
    await frame();
    const now = await frame();
    times.push((now - before) / 2);
    before = now;
    const here = box.getBoundingClientRect();
    const middle = document.elementFromPoint(here.left + 120, here.top + here.height / 2);
    blank += middle?.closest('[data-line]') ? 0 : 1;
    most = Math.max(most, document.querySelectorAll('[data-line]').length);
  }
  return { times, blank, most };
}
"""

HOSTILE = r"""
printf '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">\n'
printf '\033]8;;javascript:window.hacked=3\033\\a link\033]8;;\033\\ and \033[31mred\033[0m\n'
printf 'reversed \342\200\256txt.exe\nbell\a and nul\000 end\n'
printf '10%%\r55%%\r100%% done\n'
printf '{"status": "<b>bold</b>"}\n' >>"$BACKBURNER_REPORT"
printf 'it broke\n' >&2
exit 3
"""


def test_200_000_lines_are_scrolled_searched_and_linked_to(
    new_dashboard: Callable[..., Dashboard],
) -> None:
    """The times of frames are printed, and not judged: this machine may be busy."""
    dashboard = new_dashboard(BACKBURNER_LOG_TAIL="8000000")
    task = dashboard.run(f"seq -f 'line %06.0f' {LINES}")
    dashboard.wait_for(task, "succeeded")
    page = dashboard.page(f"/runs/{task}")
    expect(page.locator(f"[data-line='{LINES}']")).to_be_in_viewport()

    seen = page.evaluate(SCROLL)
    times = sorted(seen["times"])
    half, most = times[len(times) // 2], times[len(times) * 95 // 100]
    print(f"\n{LINES:,} lines: a frame takes {half:.1f} ms, 95 in 100 less than {most:.1f} ms")
    assert seen["blank"] == 0, "there was nothing where lines are"
    assert seen["most"] < 200, "rows that are not in view exist"

    page.get_by_label("Search output").fill("LINE 123456")
    expect(page.locator("[data-line='123456'] mark")).to_be_in_viewport()
    expect(page.get_by_text("1 of 1")).to_be_visible()

    page.locator("[data-line='123450'] a").click()
    page.locator("[data-line='123452'] a").click(modifiers=["Shift"])
    expect(page).to_have_url(re.compile(r"line=123450-123452$"))
    other = dashboard.page(page.url.partition("#")[2])
    expect(other.locator("[data-line].marked")).to_have_count(3)
    expect(other.locator("[data-line='123451']")).to_be_in_viewport()
    other.get_by_role("button", name="Wrap lines").click()
    expect(other.locator("[data-line='123451']")).to_be_in_viewport()

    with other.expect_download() as download:
        other.get_by_role("link", name="Download output").click()
    assert download.value.path().read_bytes().count(b"\n") == LINES


def test_output_is_text_whatever_it_says(dashboard: Dashboard) -> None:
    task = dashboard.run(HOSTILE, title="<i>hostile</i>", separate_stderr=True)
    dashboard.wait_for(task, "failed")
    page = dashboard.page(f"/runs/{task}")
    log = page.get_by_role("log")
    expect(log).to_contain_text("<script>window.hacked = 1</script><img src=x")
    expect(log).to_contain_text("a link and red")
    expect(log).not_to_contain_text("javascript:")
    expect(log.locator(".fg-1")).to_have_text("red")
    expect(log).to_contain_text("reversed �txt.exe")
    expect(log).to_contain_text("bell␇ and nul␀ end")
    expect(log.get_by_text("100% done", exact=True)).to_be_visible()
    expect(log).not_to_contain_text("55%")
    expect(log.locator(".row.err")).to_contain_text("it broke")
    expect(page.get_by_role("heading", level=1)).to_have_text("<i>hostile</i>")
    expect(page.locator("aside")).to_contain_text("<b>bold</b>")
    page.get_by_label("Stream").select_option("err")
    expect(log.locator("[data-line]")).to_have_count(1)
    assert page.evaluate("window.hacked") is None
    assert log.locator("script, img").count() == 0


def test_what_was_dropped_is_said_in_its_place(new_dashboard: Callable[..., Dashboard]) -> None:
    dashboard = new_dashboard(BACKBURNER_LOG_HEAD="2000", BACKBURNER_LOG_TAIL="2000")
    task = dashboard.run("yes | head -c 3000000; echo; echo the end")
    dashboard.wait_for(task, "succeeded")
    page = dashboard.page(f"/runs/{task}")
    expect(page.get_by_role("log")).to_contain_text("the end")
    page.get_by_label("Search output").fill("dropped here")
    expect(page.locator(".row.note")).to_contain_text("of output dropped here")
    expect(page.locator(".row.note")).to_be_in_viewport()


def serious(page: Page, axe: str) -> list[str]:
    """What axe finds that keeps somebody from using the page."""
    page.evaluate(axe)
    found: Any = page.evaluate("async () => (await axe.run()).violations")
    return [
        f"{each['id']}: {json.dumps([node['html'] for node in each['nodes']])[:600]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def test_every_page_in_both_themes_and_on_a_phone(dashboard: Dashboard, axe: str) -> None:
    """axe finds nothing serious, and nothing is wider than a phone."""
    asking = dashboard.run(
        'echo \'{"ask": {"id": "q", "question": "Now?"}}\' >>"$BACKBURNER_REPORT"; sleep 600',
        title="a question with a very long title that does not fit into the width of any phone",
    )
    dashboard.wait_for(asking, "input_required")
    broken = dashboard.run(
        "printf '\\033[31mred\\033[0m\\n'; echo err >&2; exit 2", session=f"other{'n' * 195}"
    )
    dashboard.wait_for(broken, "failed")
    work = {"cron": "0 3 * * *", "work": "true", "title": "at night"}
    dashboard.call("POST", "/v1/sessions/test/schedules", work)
    places = {
        "/": "a question",
        "/runs": "a question",
        f"/runs/{asking}": "Now?",
        f"/runs/{broken}": "red",
        "/sessions": "other",
        "/schedules": "at night",
        "/signals": "a question",
        "/workers": "Keeper",
    }
    problems: dict[str, list[str]] = {}
    page = dashboard.page("/", color_scheme="light")
    phone = dashboard.page("/", viewport={"width": 360, "height": 740}, has_touch=True)
    for place, text in places.items():
        for each in (page, phone):
            each.goto(f"{dashboard.url}/#{place}")
            expect(each.locator("main")).to_contain_text(text)
        wide = phone.evaluate("document.documentElement.scrollWidth")
        problems[f"{place} light"] = serious(page, axe)
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        problems[f"{place} dark"] = serious(page, axe)
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        problems[f"{place} phone"] = [f"{wide} pixels wide"] if wide > 360 else []
        assert ground == "rgb(18, 17, 16)"

    page.keyboard.press("?")
    problems["help"] = serious(page, axe)
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.get_by_role("button", name="Again and again").click()
    problems["start"] = serious(page, axe)
    page.keyboard.press("Escape")
    page.keyboard.press("t")  # from now on dark, whatever the system says
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")

    dashboard.call("POST", f"/v1/tasks/{asking}/stop", {"force": True})
    assert {place: found for place, found in problems.items() if found} == {}


def test_an_address_that_is_broken_and_a_question_that_was_left(dashboard: Dashboard) -> None:
    task = dashboard.run("sleep 600", title="sleeper")
    dashboard.wait_for(task, "running")
    page = dashboard.page(f"/runs/{task}", viewport={"width": 360, "height": 740})
    page.get_by_role("button", name="Force stop").click()
    question = page.get_by_text("Force this run to stop?")
    expect(question).to_be_visible()
    page.goto(f"{dashboard.url}/#/runs/%E0%A4%A")
    expect(page.locator("main")).to_contain_text("There is no such run")
    expect(question).to_have_count(0)
    assert dashboard.state(task) == "running"
    dashboard.call("POST", f"/v1/tasks/{task}/stop", {"force": True})
    dashboard.wait_for(task, "canceled")
    expect(page.get_by_role("status").filter(has_text="Live")).to_have_count(1)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
