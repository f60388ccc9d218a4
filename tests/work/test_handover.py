"""What callers leave for the keeper: whole, the owner's only, from many at once, gone when done."""

import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model.home import Home, shared_home
from backburner.model.redaction import HIDDEN
from backburner.work import handover, linux
from backburner.work.assignment import launch_from_here
from backburner.work.process.wrapper import Launch
from backburner.work.sealing import MARK


def launch(size: int = 10, **environment: str) -> Launch:
    """One with so much in its environment."""
    return Launch(["echo", "ä"], "/tmp", {"X": "x" * size, **environment}, 0o027, 1024)


@pytest.mark.parametrize("size", [0, 3900, 4096, 8192, 200_000])
def test_it_comes_back_as_it_was(tmp_path: Path, size: int) -> None:
    home = Home(tmp_path)
    handover.leave(home, "bg_1", launch(1))
    name = handover.leave(home, "bg_2", launch(size))
    handover.leave(home, "bg_3", launch(5))
    assert handover.take(home, "bg_2", name) == launch(size)
    assert [piece.task for piece in handover.pieces(home)] == ["bg_1", "bg_2", "bg_3"]


def test_what_was_discarded_is_gone_and_its_neighbours_are_not(tmp_path: Path) -> None:
    home = Home(tmp_path)
    names = {task: handover.leave(home, task, launch(9000)) for task in ("bg_1", "bg_2", "bg_3")}
    handover.discard(home, "bg_2", names["bg_2"])
    handover.discard(home, "bg_2", names["bg_2"])  # a second time does nothing
    with pytest.raises(FileNotFoundError):
        handover.take(home, "bg_2", names["bg_2"])
    assert handover.take(home, "bg_1", names["bg_1"]) == handover.take(home, "bg_3", names["bg_3"])
    assert [piece.task for piece in handover.pieces(home)] == ["bg_1", "bg_3"]


def test_a_place_that_is_another_tasks_by_now_is_left_alone(tmp_path: Path) -> None:
    """The end of a task comes long after its start, when the file has begun anew."""
    home = Home(tmp_path)
    name = handover.leave(home, "bg_1", launch())
    handover.discard(home, "bg_1", name)
    handover.tidy(home)
    assert handover.leave(home, "bg_2", launch()) == name
    handover.discard(home, "bg_1", name)
    assert handover.take(home, "bg_2", name) == launch()
    with pytest.raises(FileNotFoundError):
        handover.take(home, "bg_1", name)


def test_tidying_keeps_the_file_while_anything_is_in_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first, second = (handover.leave(home, task, launch()) for task in ("bg_1", "bg_2"))
    handover.discard(home, "bg_1", first)
    handover.tidy(home)
    assert handover.take(home, "bg_2", second) == launch()
    handover.discard(home, "bg_2", second)
    handover.tidy(home)
    assert Path(home.launches).stat().st_size == 0


def test_where_holes_cannot_be_punched_nothing_is_readable_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(linux, "punch_hole", refuse)
    home = Home(tmp_path)
    first, second = (handover.leave(home, task, launch()) for task in ("bg_1", "bg_2"))
    handover.discard(home, "bg_1", first)
    assert [piece.task for piece in handover.pieces(home)] == ["bg_2"]
    handover.discard(home, "bg_2", second)
    assert not Path(home.launches).read_bytes().strip(b"\0")
    handover.tidy(home)
    assert Path(home.launches).stat().st_size == 0


def test_a_piece_that_a_crash_cut_short_is_found_as_old(tmp_path: Path) -> None:
    home = Home(tmp_path)
    Path(home.launches).write_bytes(b"\x01bg_1\n{".ljust(4096, b"x"))
    (piece,) = handover.pieces(home)
    assert (piece.task, piece.age_s) == ("bg_1", float("inf"))
    handover.discard(home, piece.task, piece.name)
    assert list(handover.pieces(home)) == []


@given(environment=st.dictionaries(st.text(), st.text()))
def test_any_text_survives(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = Home(tmp_path_factory.mktemp("h"))
    wanted = Launch([*environment], "/", environment, 0, 1)
    assert handover.take(home, "bg_1", handover.leave(home, "bg_1", wanted)) == wanted


def leave_and_take(root: Path, number: int) -> bool:
    """One of many processes."""
    home = Home(root)
    for turn in range(200):
        task = f"bg_{number}-{turn}"
        wanted = launch(number * 700 + turn, TASK=task)
        name = handover.leave(home, task, wanted)
        if turn % 7 == 0:
            handover.tidy(home)
        if handover.take(home, task, name) != wanted:
            return False
        handover.discard(home, task, name)
    return True


def test_x2_many_processes_at_once_lose_and_mix_nothing(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert all(pool.starmap(leave_and_take, [(tmp_path, number) for number in range(8)]))
    home = Home(tmp_path)
    assert list(handover.pieces(home)) == []
    handover.tidy(home)
    assert Path(home.launches).stat().st_size == 0


@given(st.text(max_size=5000))
def test_what_it_is_to_read_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    given_text = replace(launch(), stdin_text=text)
    name = handover.leave(home, "bg_1", given_text)
    assert handover.take(home, "bg_1", name) == given_text


def test_d9_what_is_given_goes_to_a_shared_record_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the caller's own environment holds the same: it may not be the worker's."""
    monkeypatch.setenv("KEY", "hunter2")
    monkeypatch.setenv("OWN", "of the caller")
    monkeypatch.delenv("BACKBURNER_SECRET", raising=False)
    shared = shared_home("postgresql://db/work")
    left = launch_from_here(["true"], cwd="/", env={"KEY": "hunter2"}, separate_stderr=False)
    kept = handover.leave(shared, "bg_1", left)
    assert "of the caller" not in kept
    monkeypatch.setenv("KEY", "of the worker")
    monkeypatch.setenv("OWN", "of the worker")
    opened = handover.opened(kept.removeprefix(MARK), "bg_1")
    assert (opened.environment["KEY"], opened.environment["OWN"]) == ("hunter2", "of the worker")
    again = handover.opened(handover.leave(shared, "bg_2", opened).removeprefix(MARK), "bg_2")
    assert again == opened, "a schedule hands it on"


def test_d9_a_shared_record_has_the_names_of_variables_alone(tmp_path: Path) -> None:
    spec = {"command": "true", "env": {"K1": "hunter2"}}
    assert handover.for_record(Home(tmp_path), spec) == spec
    kept = handover.for_record(shared_home("postgresql://db/work"), spec)
    assert kept == {"command": "true", "env": {"K1": HIDDEN}}
