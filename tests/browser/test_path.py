"""What a person does at the dashboard, in a real browser (issue 7)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.dashboard import PATIENCE, Dashboard
from tests.cli.program import COMMAND
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

expect.set_options(timeout=PATIENCE)

ASKING = rf"""
echo first line
stage=$({sys.executable} -m backburner.cli ask 'Deploy to which stage?')
echo "deploying to $stage"
while :; do sleep 1; done
"""


def chip(page: Page, state: str) -> None:
    """Expect the run page to show this state."""
    expect(page.locator(".facts [data-state]")).to_have_attribute("data-state", state)


def test_from_the_start_over_output_and_a_question_to_the_stop(dashboard: Dashboard) -> None:
    page = dashboard.page("/")
    expect(page.get_by_text("Nothing has run yet")).to_be_visible()

    page.keyboard.press("n")
    page.get_by_label("Command", exact=True).fill(ASKING)
    page.get_by_role("button", name="Start", exact=True).click()

    log = page.get_by_role("log")
    expect(log).to_contain_text("first line")
    chip(page, "input_required")
    question = page.get_by_role("region", name="Question")
    expect(question).to_contain_text("Deploy to which stage?")
    question.get_by_label("Your answer").fill("staging")
    question.get_by_role("button", name="Answer").click()

    expect(log).to_contain_text("deploying to staging")
    expect(question).to_have_count(0)
    chip(page, "running")
    expect(page.locator("aside")).to_contain_text("Answered")

    # The overview knows of it, without being asked again.
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.locator(".tile.running b")).to_have_text("1")
    page.locator("section", has_text="Running now").get_by_role("link").first.click()

    page.get_by_role("button", name="Stop", exact=True).click()
    confirm = page.get_by_role("alertdialog")
    confirm.get_by_role("button", name="Keep it running").click()
    chip(page, "running")
    page.keyboard.press("s")
    confirm.get_by_role("button", name="Stop", exact=True).click()
    chip(page, "canceled")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)

    page.get_by_role("button", name="Run again").click()
    expect(log).to_contain_text("first line")
    page.get_by_role("button", name="Force stop").click()
    confirm.get_by_role("button", name="Force stop").click()
    chip(page, "canceled")


def test_rows_stay_under_the_pointer_and_many_are_stopped_at_once(dashboard: Dashboard) -> None:
    endless = "while :; do sleep 1; done"
    first = dashboard.run(endless, title="the first")
    dashboard.wait_for(dashboard.run("echo no; exit 3", title="a broken one"), "failed")

    page = dashboard.page("/runs")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("exit code 3")

    rows.first.hover()
    second = dashboard.run(endless, title="the second")
    bar = page.get_by_role("button", name="1 new run")
    expect(bar).to_be_visible()
    expect(rows).to_have_count(2)
    bar.click()
    expect(rows).to_have_count(3)
    page.mouse.move(0, 0)

    page.get_by_role("button", name="Running").click()
    expect(page).to_have_url(re.compile(r"#/runs\?state=running$"))
    expect(rows).to_have_count(2)
    page.reload()
    expect(rows).to_have_count(2)
    page.get_by_label("Search runs").fill("second")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    expect(rows).to_have_count(3)

    page.get_by_label("Select all that can be stopped").check()
    page.get_by_role("button", name="Stop 2 runs").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Stop 2 runs").click()
    expect(page.locator("tbody [data-state=canceled]")).to_have_count(2)
    assert {dashboard.state(first), dashboard.state(second)} == {"canceled"}


def test_a_tool_is_started_by_its_form_and_a_stop_is_approved(dashboard: Dashboard) -> None:
    page = dashboard.page("/runs")
    page.get_by_role("button", name="New run").click()
    form = page.get_by_role("dialog")
    form.get_by_role("button", name="Tool").click()
    form.locator("select").first.select_option("grep_files")
    form.locator("label", has_text="pattern").locator("input").fill("[")
    form.get_by_role("button", name="Start", exact=True).click()
    chip(page, "failed")
    expect(page.locator(".why")).to_contain_text("the pattern cannot be used")

    task = dashboard.run("sleep 600", title="somebody else's")
    page.goto(f"{dashboard.url}/#/")
    asking = [*COMMAND, "stop", "--session", "another", "--ask", "--grace", "0s", task]
    with subprocess.Popen(asking, stdout=subprocess.DEVNULL) as other:
        approval = page.get_by_role("region", name="Approval")
        expect(approval).to_contain_text("May another stop this run?")
        approval.get_by_role("link", name="somebody else's").click()
        page.get_by_role("button", name="Approve").click()
        assert other.wait(60) == 0
    chip(page, "canceled")


def test_a_schedule_is_made_with_a_preview_paused_and_removed(dashboard: Dashboard) -> None:
    page = dashboard.page("/schedules", timezone_id="Europe/Berlin", locale="en-GB")
    expect(page.get_by_text("Nothing is scheduled")).to_be_visible()
    page.get_by_role("button", name="New schedule").click()
    page.get_by_label("Command", exact=True).fill("make backup")
    page.get_by_label("Cron expression").fill("99 9 * * *")
    expect(page.locator(".preview .bad")).to_be_visible()
    page.get_by_label("Cron expression").fill("30 9 * * *")
    expect(page.locator(".preview li")).to_have_count(5)
    expect(page.locator(".preview li").first).to_contain_text("09:30")
    page.get_by_role("button", name="Schedule", exact=True).click()

    entry = page.locator("main li", has_text="make backup")
    expect(entry).to_contain_text("Europe/Berlin")
    entry.get_by_role("button", name="Pause").click()
    expect(entry).to_contain_text("paused")
    entry.get_by_role("button", name="Remove").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
    expect(entry.get_by_role("button")).to_have_count(0)


def test_after_a_restart_the_page_goes_on_where_it_was(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    task = dashboard.run(
        f"seq 1 2000; until [ -e {gate} ]; do sleep 0.1; done; echo after; sleep 600"
    )
    wait_until(lambda: "2000\n" in dashboard.call("GET", f"/v1/tasks/{task}/output")["text"])
    page = dashboard.page(f"/runs/{task}?line=700")
    row = page.locator("[data-line='700']")
    expect(row).to_be_in_viewport()
    expect(row).to_have_class(re.compile("marked"))

    port = dashboard.port
    dashboard.stop()
    expect(page.get_by_text("The connection is lost")).to_be_visible()
    expect(row).to_be_in_viewport()
    gate.touch()
    dashboard.start(port)
    expect(page.get_by_text("The connection is lost")).to_have_count(0)
    # What came meanwhile is told of, and what is being read has not moved.
    expect(page.get_by_role("button", name="1 new line")).to_be_visible()
    expect(row).to_be_in_viewport()
    page.get_by_role("button", name="1 new line").click()
    expect(page.get_by_role("log")).to_contain_text("after")
    dashboard.call("POST", f"/v1/tasks/{task}/stop", {"force": True})
    chip(page, "canceled")


def test_a_line_that_is_still_to_be_written_is_gone_to_when_it_is(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    task = dashboard.run(f"echo 1; until [ -e {gate} ]; do sleep 0.1; done; seq 2 2000; sleep 600")
    page = dashboard.page(f"/runs/{task}?line=700")
    expect(page.get_by_role("log")).to_contain_text("1")
    gate.touch()
    row = page.locator("[data-line='700']")
    expect(row).to_be_in_viewport()
    expect(row).to_have_class(re.compile("marked"))
    dashboard.call("POST", f"/v1/tasks/{task}/stop", {"force": True})
    chip(page, "canceled")


def test_a_stranger_gets_a_form_and_a_code_works_once(dashboard: Dashboard) -> None:
    dashboard.page("/")  # which has used the code
    page = dashboard.page("/runs", logged_in=False)
    form = page.get_by_role("heading", name="Log in to Backburner")
    expect(form).to_be_visible()
    dashboard.complaints.clear()  # of the 401 itself
    page.goto(dashboard.login)
    expect(page.get_by_role("alert")).to_contain_text("works once")
    assert "login" not in page.url
    page.get_by_label("Token").fill(dashboard.token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(form).to_be_visible()
    wait_until(lambda: page.context.cookies() == [], message="a cookie is left")
