"""Where things lie in a home folder: everything inside it, and nothing twice."""

from pathlib import Path

from backburner.model import home as home_module
from backburner.model.home import Home

HOME = Home(Path("/h"))


def test_e4_every_attempt_has_a_folder_of_its_own() -> None:
    first, second = HOME.attempt("bg_1", 1), HOME.attempt("bg_1", 2)
    assert (first.path, second.path) == ("/h/tasks/bg_1/1", "/h/tasks/bg_1/2")
    assert (first.log, first.result) == (f"{first.path}/output.log", f"{first.path}/result.json")
    names = {first.log, first.stderr, first.exit, first.wrapper, first.marks, first.result}
    assert len(names) == 6
    assert all(name.startswith(f"{first.path}/") for name in names)


def test_every_path_lies_in_the_home_and_is_in_the_list_of_the_module() -> None:
    paths = [HOME.database, HOME.write_lock, HOME.keeper_lock, HOME.keeper_log, HOME.wake]
    for path in [*paths, HOME.tasks, HOME.task("bg_1")]:
        assert path.startswith("/h/")
    listed = home_module.__doc__ or ""
    assert all(path.removeprefix("/h/") in listed for path in paths)
