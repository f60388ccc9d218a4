"""Where things lie in a home folder: everything inside it, nothing twice; and which home it is."""

from pathlib import Path

import pytest

from backburner.model import home as home_module
from backburner.model.errors import UsageError
from backburner.model.home import Home, resolve_home

HOME = Home(Path("/h"))


def test_e4_every_attempt_has_a_folder_of_its_own() -> None:
    attempts = [
        HOME.attempt(name, number) for name in ("bg_1", "bg_11", "bg") for number in (1, 11)
    ]
    assert len({folder.path for folder in attempts}) == 6
    assert all(folder.path.startswith(f"{HOME.tasks}/") for folder in attempts)
    first = attempts[0]
    assert (first.log, first.result) == (f"{first.path}/output.log", f"{first.path}/result.json")
    names = {first.log, first.stderr, first.wrapper, first.marks, first.result}
    assert len(names) == 5
    assert all(name.startswith(f"{first.path}/") for name in names)


def test_every_path_lies_in_the_home_and_is_in_the_list_of_the_module() -> None:
    paths = [HOME.database, HOME.write_lock, HOME.keeper_lock, HOME.keeper_log, HOME.wake]
    assert len({*paths, HOME.tasks}) == 6
    listed = home_module.__doc__ or ""
    for path in [*paths, HOME.tasks]:
        assert path.startswith("/h/")
        assert path.removeprefix("/h/") in listed


def test_the_home_is_the_one_given_or_of_the_environment_or_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_STATE_HOME")
    assert resolve_home(None) == tmp_path / ".local" / "state" / "backburner"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert resolve_home(None) == Path("/state/backburner")
    monkeypatch.setenv("BACKBURNER_HOME", "~/mine")
    assert resolve_home(None) == tmp_path / "mine"
    assert resolve_home("here/../there") == tmp_path / "there"
    assert resolve_home(Path("/given")) == Path("/given")


@pytest.mark.parametrize("address", ["postgresql://db/x", "postgres://db/x"])
def test_x10_a_database_is_no_folder(address: str) -> None:
    with pytest.raises(UsageError, match="no database"):
        resolve_home(address)
