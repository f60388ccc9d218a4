"""X4: a session is told of lines that match: at once, not too often, and not of a flood."""

from pathlib import Path

import pytest

from backburner import Backburner, Session, SignalKind, State
from backburner.runtime.watching.scan import Scanner, Seen
from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds
from backburner.work.log.pattern import LinePattern
from tests.runtime.watching.told import events, texts, told, until_told
from tests.waiting import wait_until, wait_until_async
from tests.work.log.jobs import running_job

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

KIB = 1024


async def test_x4_a_match_is_told_at_once_and_the_others_are_counted(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("count")
        line = "echo fine; echo ERROR 1; read -r; for i in 2 3 4; do echo ERROR $i; done"
        task = await session.run(line, match="^ERROR", title="tests", stdin=True)
        (signal,) = await until_told(session, SignalKind.MATCH)
        assert signal["text"] == f"tests ({task.id}) printed: ERROR 1"
        assert signal["data"] == {"line": "ERROR 1", "more": 0, "stream": "out"}
        assert signal["key"] == f"{task.id}:match:1:out.5"
        await task.send("go on")
        await task.wait(30)
        # The end is told after everything that came before it, without waiting for ten seconds.
        assert await texts(session, SignalKind.MATCH) == [
            "printed: ERROR 1",
            "printed: ERROR 2 (and 2 more)",
        ]
        seqs = [signal.record.seq for signal in await session.told()]
        assert seqs == sorted(seqs)
        assert (await session.told())[-1].document()["kind"] == "completed"


@pytest.mark.slow
async def test_x4_what_came_in_between_is_told_after_ten_seconds(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("later")
        task = await session.run(
            "echo ERROR 1; read -r; echo ERROR 2; echo ERROR 3; exec sleep 60",
            match="ERROR",
            stdin=True,
        )
        await until_told(session, SignalKind.MATCH)
        await task.send("go on")
        first, second = await until_told(session, SignalKind.MATCH, 2)
        assert (first["data"]["line"], second["data"]["line"]) == ("ERROR 1", "ERROR 2")
        assert second["data"]["more"] == 1
        at = [event.at async for event in task.events(follow=False) if event.kind.value == "match"]
        assert at[1] - at[0] > 9.5e6
        await task.stop(force=True)


async def test_x4_a_line_is_told_once_however_it_arrives(shared_home: Path) -> None:
    """A prompt without an end, then the rest of its line; and a line of many pieces."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session("once")
        line = (
            "printf 'Overwrite? '; read -r; printf 'Overwrite? '; sleep 0.3; echo Overwrite?;"
            "for i in $(seq 3000); do printf 'Overwrite? '; done; echo"
        )
        task = await session.run(line, match="Overwrite", stdin=True)
        await until_told(session, SignalKind.MATCH)
        await task.send("y")
        await task.wait(30)
        signals = await told(session, SignalKind.MATCH)
        assert sum(1 + signal["data"]["more"] for signal in signals) == 2


async def test_x4_lines_are_shown_without_controls_and_cut(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("shown")
        line = r"printf '\033[31mERROR\033[0m \033]0;title\007\t'; seq -s, 2000"
        await (await session.run(line, match="ERROR")).wait(30)
        (signal,) = await told(session, SignalKind.MATCH)
        text = signal["text"].partition("printed: ")[2]
        assert text.startswith("ERROR 1,2,3,")
        assert text.endswith("…")
        assert len(text) <= 200
        assert text.isprintable()
        assert len(signal["data"]["line"]) <= 1000


async def test_x4_a_flood_of_matches_is_told_of_once_more_and_then_no_more(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("flood")
        task = await session.run("yes ERROR", match="ERROR")
        await wait_until_async(lambda: stopped(session))
        *before, last = await told(session, SignalKind.MATCH)
        assert len(before) <= 1, "the first one, if it was seen before the others"
        assert last["text"].endswith("more than 1,000 lines matched in a minute: no more are told")
        assert "no more are told" in ((await task.refresh()).record.detail or "")
        await task.stop(force=True)
        assert task.state is State.CANCELED
        assert (await told(session, SignalKind.MATCH))[-1]["key"] == last["key"]
        assert len(await events(task, "match")) == len(before) + 1


async def stopped(session: Session) -> bool:
    return any(signal["data"].get("stopped") for signal in await told(session, SignalKind.MATCH))


async def test_x4_x3_a_flood_that_outruns_the_watch_is_said(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("outrun")
        line = "echo first; read -r; timeout 1 seq 1000000000; echo; echo last; exit 0"
        task = await session.run(line, match="first|last", stdin=True)
        await until_told(session, SignalKind.MATCH)
        await task.send("go on")
        await task.wait(60)
        assert task.exit_code == 0
        # What is in the head and in the tail of the log is looked at in any case.
        assert await texts(session, SignalKind.MATCH) == ["printed: first", "printed: last"]
        details = await events(task, "detail")
        assert ["some lines were not looked at" in data["detail"] for data in details] == [True]


@pytest.mark.parametrize(
    "pattern", [r"((a{1,100}){1,10})\b.{1,50}(b|c.{100})$", r"(?:a?){500}(?:a{500})z", "(x+x+)+y"]
)
async def test_x4_a_hostile_pattern_holds_nobody_up(shared_home: Path, pattern: str) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(pattern)
        flood = "yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | tr -d '\\n'"
        task = await session.run(flood, match=pattern, ready_output=pattern)
        for _ in range(5):
            other = await (await session.run("true")).wait(30)
            assert other.state is State.SUCCEEDED
        await task.stop(force=True)
        assert task.state is State.CANCELED


@pytest.mark.parametrize("copying", [False, True], ids=["holes", "copied"])
def test_x4_x3_every_match_in_a_log_that_is_cut_is_found_once(
    tmp_path: Path, copying: bool
) -> None:
    """Both layouts of a log: the scanner against a job that writes faster than is kept."""
    log = tmp_path / "output.log"
    bounder = LogBounder(log, LogBounds(16 * KIB, 64 * KIB, 16 * KIB), copying=copying)
    scanner = scanner_of(log)
    found: list[int] = []
    places: dict[str, list[int]] = {}
    with running_job(log, "seq", "1000000000", "9999999999") as job:
        wait_until(lambda: log.exists() and log.stat().st_size > 0)
        before = 0
        # The other one is to go on in the middle, also where the first scan has found enough.
        while job.poll() is None and not (before and scanner.skipped and len(found) > 20):
            bounder.bound()
            places, before = scanner.places, len(found)
            found += numbers(scanner.scan(0.05))
    bounder.bound(final=True)
    found += rest_of(scanner)
    assert scanner.skipped
    assert found[0] == 1_000_000_777
    assert len(found) > 20
    assert found == sorted(set(found))

    # Another one that takes over finds what came after, and nothing twice.
    other = scanner_of(log, places)
    rest = rest_of(other)
    assert rest
    assert rest == found[len(found) - len(rest) :]


def scanner_of(log: Path, places: dict[str, list[int]] | None = None) -> Scanner:
    scanner = Scanner({"out": str(log)})
    scanner.match = LinePattern.compiled("^[0-9]{7}777$")
    scanner.begin(places or {}, {})
    return scanner


def numbers(seen: Seen) -> list[int]:
    return [int(match.text) for match in seen.matches]


def rest_of(scanner: Scanner) -> list[int]:
    found: list[int] = []
    more = True
    while more:
        seen = scanner.scan(0.05, ended=True)
        found += numbers(seen)
        more = seen.more
    return found
