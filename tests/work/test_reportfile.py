"""X5: reading a report from where the record is, bounded, whatever the job does with the file."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.work import reportfile
from backburner.work.report import LINE_MAX_BYTES, Ask, Item, Mistake, Outcome, Status
from backburner.work.reportfile import BACKLOG_MAX_BYTES, ReportFile, drain

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report"


def append(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def status(text: str) -> str:
    return json.dumps({"status": text}) + "\n"


def ask(number: int) -> str:
    return json.dumps({"ask": {"id": str(number), "question": "?"}}) + "\n"


def items(file: ReportFile, *, last: bool = False) -> list[Item]:
    """Everything that can be read."""
    found = [said.item for said in file.read(last=last)]
    while file.more:
        found += [said.item for said in file.read(last=last)]
    return found


def test_x5_only_what_is_new_is_read(path: Path) -> None:
    file = ReportFile(str(path), 0)
    assert not file.look()
    assert items(file) == []
    append(path, status("a"))
    assert file.look()
    assert not file.look()
    assert items(file) == [Status("a")]
    append(path, status("b"))
    assert file.look()
    assert items(file) == [Status("b")]
    assert items(file) == []


def test_x5_a_line_counts_when_it_is_whole(path: Path) -> None:
    file = ReportFile(str(path), 0)
    append(path, '{"status": "one')
    assert items(file) == []
    append(path, '"}\n\n  \n{"status": "two"}')
    assert items(file) == [Status("one")]
    assert items(file, last=True) == [Status("two")], "nobody adds its end any more"
    assert file.position == path.stat().st_size
    assert items(file, last=True) == []


def test_x5_of_what_is_repeated_the_latest_counts(path: Path) -> None:
    for number in range(5000):
        append(path, f'{{"progress": {{"current": {number}}}}}\n{status(str(number))}')
        if number % 1000 == 0:
            append(path, ask(number))
    append(path, '{"result": 1}\n{"status": 3}\n{"result": 2}\n')
    file = ReportFile(str(path), 0)
    said = file.read()
    assert [type(each.item).__name__ for each in said] == [
        *["Ask"] * 5, "Advance", "Status", "Mistake", "Outcome",
    ]  # fmt: skip
    assert said[-1].item == Outcome(2, 1)
    assert [each.end for each in said] == sorted(each.end for each in said)
    assert said[-1].end == path.stat().st_size


@given(st.lists(st.sampled_from(["s", "a", "g"]), max_size=12), st.data())
def test_x5_a_reader_that_begins_anew_at_any_end_misses_nothing(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("r") / "report"
    texts: dict[str, Callable[[str], str]] = {
        "s": status,
        "a": lambda number: ask(int(number)),
        "g": lambda number: f"garbage {number}\n",
    }
    path.write_text("".join(texts[kind](str(number)) for number, kind in enumerate(lines)))
    said = ReportFile(str(path), 0).read()
    if said:
        at = data.draw(st.integers(0, len(said) - 1))
        rest = ReportFile(str(path), said[at].end).read()
        assert [each.item for each in rest] == [each.item for each in said[at + 1 :]]


@pytest.mark.parametrize("last", [False, True])
def test_x5_a_line_that_is_too_long_is_left_out(path: Path, last: bool) -> None:
    append(path, status("before"))
    append(path, b'{"status": "' + b"x" * (3 * LINE_MAX_BYTES) + b'"}\n')
    append(path, status("after"))
    append(path, b"y" * (2 * LINE_MAX_BYTES) + b"\n" + status("the end").encode())
    found = items(ReportFile(str(path), 0), last=last)
    assert found[0] == Status("before")
    assert Status("after") in found
    assert found[-1] == Status("the end")
    wrong = [each for each in found if isinstance(each, Mistake)]
    assert [each.kind for each in wrong] == ["line", "line"]


def test_x5_the_longest_result_has_room_in_a_line(path: Path) -> None:
    value = "é" * (1024 * 1024 // 6 - 1)  # six characters each, as JSON
    append(path, json.dumps({"result": value}) + "\n")
    assert items(ReportFile(str(path), 0)) == [Outcome(value, len(json.dumps(value)))]


def test_x5_many_lines_without_sense_are_read_a_part_at_a_time(path: Path) -> None:
    append(path, "{}\n" * 100_000 + status("after"))
    file = ReportFile(str(path), 0)
    assert len(file.read()) < 5000
    assert file.more
    assert items(file)[-1] == Status("after")


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "dangling", "socket", "device"])
def test_x5_what_is_no_plain_file_is_neither_read_nor_waited_for(
    path: Path, tmp_path: Path, kind: str
) -> None:
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "link":
            (tmp_path / "other").write_text(status("stolen"))
            path.symlink_to(tmp_path / "other")
        case "dangling":
            path.symlink_to(tmp_path / "none")
        case "socket":
            import socket

            with socket.socket(socket.AF_UNIX) as opened:
                opened.bind(str(path))
        case _:
            path.symlink_to("/dev/zero")
    file = ReportFile(str(path), 0)
    file.look()
    for last in (False, True):
        (found,) = items(file, last=last)
        assert isinstance(found, Mistake)
    file.free()
    drain(str(path))


def test_x5_a_report_that_was_begun_anew_is_read_from_its_beginning(path: Path) -> None:
    append(path, status("one") + status("two"))
    file = ReportFile(str(path), 0)
    items(file)
    path.write_text(status("three"))
    assert items(file) == [Status("three")]


def test_x3_disk_space_of_what_was_read_is_freed(path: Path) -> None:
    append(path, status("x" * 400) * 20_000)
    file = ReportFile(str(path), 0)
    items(file)
    file.free()
    assert path.stat().st_size > 8_000_000
    assert path.stat().st_blocks * 512 < 100_000
    append(path, status("after"))
    assert items(file) == [Status("after")]
    # A reader that begins where everything is freed finds what follows.
    append(path, status("more"))
    assert items(ReportFile(str(path), 4096))[-1] == Status("more")


def test_x3_a_flood_loses_its_middle_and_says_so(path: Path) -> None:
    file = ReportFile(str(path), 0)
    piece = status("x" * 400) * 25_000
    for _ in range(5):
        append(path, piece)
        file.look()
        assert path.stat().st_blocks * 512 <= BACKLOG_MAX_BYTES + len(piece)
    append(path, ask(7))
    found = items(file)
    (told,) = [each for each in found if isinstance(each, Mistake)]
    assert "MiB were written faster than they could be read" in told.text
    assert any(isinstance(each, Ask) for each in found), "the end of it is kept"


def test_x3_where_no_hole_can_be_punched_it_begins_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(reportfile.linux, "punch_hole", cannot)
    file = ReportFile(str(path), 0)
    append(path, status("x" * 400) * 50_000)
    file.look()
    assert path.stat().st_size == 0
    append(path, status("after"))
    found = items(file)
    assert isinstance(found[0], Mistake)
    assert found[-1] == Status("after")


def test_x3_what_is_left_of_an_ended_task_cannot_fill_the_disk(path: Path) -> None:
    drain(str(path))
    append(path, status("x"))
    drain(str(path))
    assert path.stat().st_size
    append(path, status("x" * 400) * 5000)
    drain(str(path))
    assert path.stat().st_size == 0
