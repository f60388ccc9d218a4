"""E13: a session that was given no folder has one of its own, and no name leads out of there."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner import Backburner, Context
from backburner.model.home import AttemptFolder
from backburner.work.child.context import context_of
from backburner.work.tools.defaults import default_registry
from backburner.work.tools.nowhere import Nowhere
from backburner.work.tools.own_folder import OwnFolder, own_folder, recognised

SESSIONS = "/home/of/it/sessions"

HOSTILE = ["", ".", "..", "...", "%", "%2E", "%2e.", "a/b", "a%2Fb", "../..", "\ud800", "ä" * 300]
names = st.sampled_from(HOSTILE) | st.text(max_size=300) | st.text("./%-2Ee", max_size=6)


def with_files(home: Path) -> Backburner:
    bb = Backburner.open(home)
    for tool in default_registry():
        if tool.name not in bb.registry:
            bb.registry.add(tool)
    return bb


async def test_e13_files_can_be_written_in_a_plain_session(home: Path) -> None:
    async with with_files(home) as bb:
        session = bb.session("ok")
        written = await session.invoke("write_file", {"path": "a/b.txt", "text": "x"})
        assert (written.success, written.error) == (True, None)
        assert (await session.invoke("list_directory", {})).result["entries"] == [
            {"name": "a", "kind": "directory", "bytes": os.stat(f"{session.folder}/a").st_size}
        ]
        assert Path(session.folder, "a/b.txt").read_text() == "x"
        for path in (home / "sessions", Path(session.folder).parent, Path(session.folder)):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        other = bb.session("ok", owner="somebody else")
        assert (await other.invoke("read_file", {"path": "a/b.txt"})).error is not None


async def test_d1_a_call_that_uses_no_files_makes_no_folder(home: Path) -> None:
    async with with_files(home) as bb:
        assert (await bb.session("s").invoke("add", {"a": 1, "b": 2})).success
        assert not (home / "sessions").exists()


async def test_e13_a_tool_of_ones_own_finds_the_folder_made(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool
        def keep(context: Context) -> None:
            assert context.folder is not None
            Path(context.folder, "kept").touch()

        assert (await bb.session("s").invoke("keep")).error is None
        assert Path(bb.session("s").folder, "kept").exists()


async def test_e13_a_folder_that_somebody_gave_is_not_made(home: Path, tmp_path: Path) -> None:
    async with with_files(home) as bb:
        session = bb.session("s", folder=tmp_path / "missing")
        written = await session.invoke("write_file", {"path": "b.txt", "text": "x"})
        assert written.error == "ToolError: there is no b.txt"
        assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("owner", ["..", ".", "ada"])
@pytest.mark.parametrize("name", ["..", ".", "../../x", "s" * 200, "é" * 100])
async def test_e13_no_name_of_a_session_leads_out_of_the_folder(
    home: Path, owner: str, name: str
) -> None:
    async with with_files(home) as bb:
        session = bb.session(name, owner=owner)
        written = await session.invoke("write_file", {"path": "b.txt", "text": "x"})
        assert written.error is None
        (found,) = home.rglob("b.txt")
        assert found == Path(session.folder, "b.txt")
        assert found.resolve().relative_to((home / "sessions").resolve()).parts[2:] == ("b.txt",)


@given(st.tuples(names, names), st.tuples(names, names))
def test_e13_each_session_has_a_folder_of_its_own_beneath_the_others(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    path = own_folder(SESSIONS, *one)
    assert (path == own_folder(SESSIONS, *other)) is (one == other)
    assert os.path.normpath(path) == path
    assert len(path.removeprefix(f"{SESSIONS}/").split("/")) == 2
    assert all(len(os.fsencode(part)) <= 255 for part in path.split("/"))
    assert isinstance(recognised(str(path), SESSIONS), OwnFolder)


@pytest.mark.parametrize(
    "path",
    ["/elsewhere/a/b", SESSIONS, f"{SESSIONS}/a", f"{SESSIONS}/a/b/c", f"{SESSIONS}/a/..",
     f"{SESSIONS}//b", f"{SESSIONS}2/a/b"],
)  # fmt: skip
def test_e13_no_other_folder_is_taken_for_one(path: str) -> None:
    assert type(recognised(path, SESSIONS)) is str


def test_e13_a_process_of_its_own_finds_the_folder_made_too(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"{home}/sessions/local/s"
    monkeypatch.setenv("BACKBURNER_FOLDER", own)
    assert context_of(AttemptFolder(str(tmp_path))).folder == own
    assert os.path.isdir(own)
    given_one = f"{tmp_path}/given"
    assert Context(Nowhere(), folder=given_one).folder == given_one
    assert not os.path.exists(given_one)
