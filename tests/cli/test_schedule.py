"""`schedule`: work that starts by the clock, as a person makes it and sees it (E9)."""

import re
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.cli import main
from backburner.cli.commands.schedule import VERBS
from backburner.model import clock
from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.runtime.schedules.times import expect_since, minutes_ago
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

USAGE, NOT_FOUND, LIMIT = 2, 3, 5

_ID = re.compile(r"\bsc_[0-9a-hjkmnp-tv-z]{16}\b")
_DUE = re.compile(r"\bin [\d.]+[smhd](?: \d+[smh])?")
_BLANKS = re.compile(r"(?<=\S) {2,}")


def steady(text: str) -> str:
    """Without what changes by itself: ids of schedules, and how soon they fire."""
    for number, found in enumerate(dict.fromkeys(_ID.findall(text)), 1):
        text = text.replace(found, f"sc_{number:016d}")
    return _BLANKS.sub("  ", _DUE.sub("in SOON", text))


@pytest.mark.parametrize("verb", VERBS)
def test_e9_every_verb_explains_itself(
    backburner: Program, golden: Golden, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = backburner("schedule", verb, "--help")
    assert (shown.code, shown.err) == (0, "")
    for word in ("Examples:", "--home", "--session", "--json"):
        assert word in shown.out
    golden.check(f"help-schedule-{verb}", shown.out, exact=True)


async def test_e9_a_person_sees_schedules_and_their_firings(
    backburner: Program, golden: Golden, home: Path
) -> None:
    added = backburner(
        "schedule", "add", "--cron", "30 2 29 2 *", "--tz", "Europe/Berlin", "--title", "back up",
        "--missed", "all", "--", "sh", "-c", f"until test -e {home}/go; do sleep 0.05; done",
    )  # fmt: skip
    assert (added.code, added.err) == (0, "")
    backup = added.out.strip()
    assert _ID.fullmatch(backup)
    paused = backburner("schedule", "add", "--cron", "*/10 * * * *", "--", "make check").out.strip()
    said = backburner("schedule", "pause", paused[:10])
    assert (said.out, said.err) == ("", f"backburner: {paused} is paused\n")
    backburner("schedule", "add", "--session", "other", "--at", "2100-12-24T18:00Z", "--", "true")
    listed = backburner("schedule", "ls").out
    everywhere = backburner("schedule", "ls", "--all-sessions").out
    assert (listed.count("\n"), everywhere.count("\n")) == (3, 4)
    async with Backburner.open(home) as bb:
        schedule = await bb.session("test").find_schedule(backup)
        await expect_since(bb, schedule, minutes_ago(1))

        async def dealt_with(count: int) -> bool:
            return len(await schedule.firings()) == count

        await wait_until_async(lambda: dealt_with(1))
        await expect_since(bb, schedule, clock.now())
        await wait_until_async(lambda: dealt_with(2))
    shown = backburner("schedule", "show", backup)
    golden.check("schedule", steady(f"{listed}\n{everywhere}\n{shown.out}"))
    document = backburner("schedule", "show", backup, "--json").json
    assert document["firings"][-1]["task_id"] == document["last_task"]
    task = backburner("show", document["last_task"])
    (home / "go").touch()
    assert re.search(rf"^ +schedule +{backup}$", task.out, re.MULTILINE)
    assert backburner("schedule", "resume", paused, "--json").json["enabled"] is True
    assert backburner("schedule", "rm", paused).err == f"backburner: {paused} is canceled\n"
    assert [each["schedule_id"] for each in backburner("schedule", "ls", "--json").json] == [backup]
    assert len(backburner("schedule", "ls", "-a", "--json").json) == 2


def test_e9_once_in_a_moment(backburner: Program) -> None:
    made = backburner("schedule", "add", "--at", "+5s", "--json", "--", "echo $0 ran").json
    assert (made["created"], made["schedule_type"]) == (True, "once")
    wait_until(lambda: backburner("ls", "-aq").out == made["task_id"] + "\n")
    assert backburner("wait", made["task_id"]).code == 0
    assert "ran" in backburner("logs", made["task_id"]).out
    assert "no schedules in session test" in backburner("schedule", "ls").err


def test_e9_mistakes(
    backburner: Program,
    golden: Golden,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def in_process(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["backburner", "schedule", *words])
        status = main()
        out, err = capsys.readouterr()
        assert out == ""
        return f"$ backburner schedule {' '.join(words)}\n{err}[{status}]\n"

    cron = ("add", "--cron", "0 0 1 1 *")
    golden.check(
        "errors-schedule",
        "\n".join(
            in_process(*words)
            for words in (
                ("add",),
                ("add", "--", "true"),
                ("add", "--cron", "* * * * *", "--at", "+1m", "--", "true"),
                ("add", "--cron", "*/10 * * *", "--", "true"),
                ("add", "--cron", "61 * * * *", "--", "true"),
                ("add", "--cron", "0 0 30 2 *", "--", "true"),
                ("add", "--cron", "0 0 */31 * MON#2", "--", "true"),
                ("add", "--at", "tomorrow", "--", "true"),
                ("add", "--at", "+soon", "--", "true"),
                ("add", "--at", "2001-01-01T00:00:00Z", "--", "true"),
                ("add", "--at", "2130-01-01T00:00:00", "--", "true"),
                ("add", "--at", "2130-13-01T00:00:00Z", "--", "true"),
                (*cron, "--tz", "Berlin", "--", "true"),
                (*cron, "--missed", "maybe", "--", "true"),
                (*cron, "--overlap", "maybe", "--", "true"),
                (*cron, "--jitter", "a bit", "--", "true"),
                (*cron, "--jitter", "9d", "--", "true"),
                (*cron, "--max-runtime", "long", "--", "true"),
                (*cron, "--env", "NOTHING", "--", "true"),
                (*cron, "--cwd", "/nowhere", "--", "true"),
                ("pause", "sc_none"),
                ("resume", "sc_none"),
                ("rm", "sc_none"),
                ("show", "sc_none"),
                ("frob",),
            )
        ),
        exact=True,
    )
    assert backburner("schedule", "ls", "-a", "--json").json == []


def test_e9_five_and_no_more(backburner: Program) -> None:
    add = ("schedule", "add", "--cron", "0 0 1 1 *")
    for number in range(5):
        assert backburner(*add, "--id", f"yearly-{number}", "--", "true").code == 0
    assert backburner(*add, "--id", "yearly-0", "--", "true").out == "yearly-0\n"
    refused = backburner(*add, "--", "true")
    assert refused.code == LIMIT
    assert "5 is the limit" in refused.err
    assert backburner("schedule", "rm", "yearly").code == USAGE  # which of the five?
    offered = backburner("completion", "--candidates", "schedules", "--", "yearly-3")
    assert offered.out == "yearly-3\tactive, true\n"
    assert backburner("schedule", "rm", "yearly-3", "--session", "other").code == NOT_FOUND
    assert backburner("schedule", "rm", "yearly-3").code == 0
    assert backburner("schedule", "resume", "yearly-3").code == USAGE
