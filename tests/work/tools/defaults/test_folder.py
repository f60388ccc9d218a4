"""E13: file tools work in the folder of the session, and there is no way out of it."""

import os
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backburner import Context, InvalidArguments, Outcome, ToolError
from backburner.work.tools.defaults import default_registry
from backburner.work.tools.nowhere import Nowhere
from tests.waiting import wait_until

REGISTRY = default_registry()

Call = Callable[..., Any]


class Desk:
    """A folder, and the tools in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.context = Context(Nowhere(), folder=str(path))

    async def __call__(self, name: str, **arguments: Any) -> Any:
        outcome = await REGISTRY.execute(name, arguments, self.context)
        assert isinstance(outcome, Outcome)
        return outcome.result

    async def refuses(self, name: str, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            await self(name, **arguments)
        assert str(self.path) not in str(caught.value) or str(self.path) in str(arguments)
        return str(caught.value)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "desk").mkdir()
    (tmp_path / "outside.txt").write_text("outside")
    return Desk(tmp_path / "desk")


async def test_e13_a_file_is_written_read_changed_listed_and_deleted(desk: Desk) -> None:
    written = await desk("write_file", path="a/b/c.txt", text="one\ntwo\nthrée\n")
    assert written == {"path": "a/b/c.txt", "bytes": 15, "created": True}
    assert (await desk("write_file", path="a/b/c.txt", text="one\ntwo\nthrée\n"))[
        "created"
    ] is False
    assert await desk("read_file", path="a/b/c.txt", first_line=2, lines=1) == {
        "path": "a/b/c.txt",
        "text": "two\n",
        "first_line": 2,
        "total_lines": 3,
        "complete": False,
    }
    assert (await desk("read_file", path="./a/x/../b/c.txt"))["complete"] is True
    edited = await desk("edit_file", path="a/b/c.txt", old="two", new="2")
    assert edited == {"path": "a/b/c.txt", "replaced": 1, "bytes": 13}
    assert (desk.path / "a/b/c.txt").read_text() == "one\n2\nthrée\n"
    listed = await desk("list_directory", path="a")
    assert [(entry["name"], entry["kind"]) for entry in listed["entries"]] == [("b", "directory")]
    about = await desk("stat_file", path="a/b/c.txt")
    assert (about["kind"], about["bytes"], about["permissions"][0]) == ("file", 13, "-")
    assert (await desk("stat_file", path="."))["kind"] == "directory"
    assert (await desk("delete_file", path="a/b/c.txt"))["deleted"] is True
    assert os.listdir(desk.path / "a/b") == []


async def test_e13_an_absolute_path_inside_is_the_same_file(desk: Desk) -> None:
    await desk("write_file", path=str(desk.path / "a.txt"), text="x")
    assert (await desk("read_file", path="a.txt"))["text"] == "x"


TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {}),
    ("write_file", {"text": "changed"}),
    ("edit_file", {"old": "outside", "new": "changed"}),
    ("list_directory", {}),
    ("delete_file", {}),
    ("stat_file", {}),
    ("grep_files", {"pattern": "outside"}),
]
WAYS_OUT = ["../outside.txt", "a/../../outside.txt", "/etc/passwd", "..", "/", "../desk2", "\0", ""]


@pytest.mark.parametrize(("name", "arguments"), TOOLS)
@pytest.mark.parametrize("path", WAYS_OUT)
async def test_e13_no_path_leads_outside(
    desk: Desk, name: str, arguments: dict[str, Any], path: str
) -> None:
    await desk.refuses(name, path=path, **arguments)
    assert (desk.path.parent / "outside.txt").read_text() == "outside"


@pytest.mark.parametrize(("name", "arguments"), TOOLS)
async def test_e13_no_link_is_followed(desk: Desk, name: str, arguments: dict[str, Any]) -> None:
    (desk.path / "link.txt").symlink_to("../outside.txt")
    (desk.path / "up").symlink_to("..")
    if name not in ("delete_file", "stat_file"):
        await desk.refuses(name, path="link.txt", **arguments)
    for path in ("up/outside.txt", "up/new/outside.txt"):
        assert "link" in await desk.refuses(name, path=path, **arguments)
    assert (desk.path.parent / "outside.txt").read_text() == "outside"
    assert sorted(os.listdir(desk.path.parent)) == ["desk", "outside.txt"]


async def test_e13_a_link_is_described_and_deleted_itself(desk: Desk) -> None:
    (desk.path / "link.txt").symlink_to("../outside.txt")
    assert (await desk("stat_file", path="link.txt"))["kind"] == "link"
    assert (await desk("list_directory"))["entries"][0]["kind"] == "link"
    await desk("delete_file", path="link.txt")
    assert (desk.path.parent / "outside.txt").exists()


async def test_e13_a_hard_link_is_not_written_through(desk: Desk) -> None:
    os.link(desk.path.parent / "outside.txt", desk.path / "same.txt")
    await desk("write_file", path="same.txt", text="inside")
    assert (desk.path.parent / "outside.txt").read_text() == "outside"


@pytest.mark.slow
async def test_e13_a_folder_that_is_swapped_for_a_link_leads_nowhere(desk: Desk) -> None:
    """A race: one thread swaps a folder for a link to the outside and back, all the while."""
    secret = desk.path.parent / "secret"
    secret.mkdir()
    (secret / "f.txt").write_text("outside")
    (desk.path / "d").mkdir()
    (desk.path / "d" / "f.txt").write_text("inside")
    (desk.path / "link").symlink_to(secret)
    over, swaps = threading.Event(), 0

    def put(source: Path, target: Path) -> None:
        """In the place of a folder that a write has made meanwhile."""
        while True:
            try:
                os.rename(source, target)
            except OSError:
                shutil.rmtree(target, ignore_errors=True)
            else:
                return

    def swap() -> None:
        nonlocal swaps
        folder, link, spare = desk.path / "d", desk.path / "link", desk.path / "spare"
        while not over.is_set():
            os.rename(folder, spare)
            put(link, folder)
            os.rename(folder, link)
            put(spare, folder)
            swaps += 1

    thread = threading.Thread(target=swap)
    thread.start()
    seen: set[str] = set()
    try:
        wait_until(lambda: swaps)
        for _ in range(300):
            try:
                seen.add((await desk("read_file", path="d/f.txt"))["text"])
                await desk("write_file", path="d/f.txt", text="inside")
            except ToolError:
                pass
    finally:
        over.set()
        thread.join()
    assert seen <= {"inside"}
    assert os.listdir(secret) == ["f.txt"]
    assert (secret / "f.txt").read_text() == "outside"


async def test_e13_pipes_sockets_and_devices_are_refused(desk: Desk) -> None:
    os.mkfifo(desk.path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(desk.path)
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        for path in ("pipe", "socket"):
            for name, arguments in TOOLS:
                if name not in ("stat_file", "list_directory"):
                    await desk.refuses(name, path=path, **arguments)
            assert (await desk("stat_file", path=path))["kind"] == "other"
    assert (await desk("grep_files", pattern="x"))["complete"] is True
    assert "device" in await Desk(Path("/dev")).refuses("read_file", path="null")


async def test_e13_what_is_wrong_is_said(desk: Desk) -> None:
    (desk.path / "binary").write_bytes(b"\x7fELF\0\0")
    (desk.path / "twice.txt").write_text("ab ab")
    assert "there is no nothing.txt" in await desk.refuses("read_file", path="nothing.txt")
    assert "is a directory" in await desk.refuses("read_file", path=".")
    assert "binary" in await desk.refuses("read_file", path="binary")
    assert "binary" in await desk.refuses("edit_file", path="binary", old="E", new="e")
    assert "not in twice" in await desk.refuses("edit_file", path="twice.txt", old="c", new="")
    assert "2 times" in await desk.refuses("edit_file", path="twice.txt", old="ab", new="")
    assert "no directory" in await desk.refuses("read_file", path="twice.txt/more")
    assert "no directory" in await desk.refuses("list_directory", path="twice.txt")
    assert "directory" in await desk.refuses("delete_file", path=".")
    assert "too long" in await desk.refuses("read_file", path="x" * 300)
    growth = {"old": "ab", "new": "x" * 6_000_000, "everywhere": True}
    assert "bytes" in await desk.refuses("edit_file", path="twice.txt", **growth)
    for path in ("\ud800", "a/\ud800"):
        with pytest.raises((InvalidArguments, ToolError)):
            await desk("read_file", path=path)
    await desk("edit_file", path="twice.txt", old="ab", new="cd", everywhere=True)
    assert (desk.path / "twice.txt").read_text() == "cd cd"


@pytest.mark.slow
async def test_e13_sizes_are_bounded(desk: Desk) -> None:
    (desk.path / "large.txt").write_bytes(b"x" * (10 * 1024 * 1024 + 1))
    assert "bytes" in await desk.refuses("read_file", path="large.txt")
    assert "bytes" in await desk.refuses("write_file", path="n", text="x" * (10 * 1024 * 1024 + 1))
    (desk.path / "long.txt").write_text("x" * 100_000)
    part = await desk("read_file", path="long.txt")
    assert (len(part["text"]), part["complete"]) == (60_000, False)
    for number in range(1100):
        (desk.path / f"{number:04}.txt").touch()
    listed = await desk("list_directory")
    assert (len(listed["entries"]), listed["complete"]) == (1000, False)


async def test_e13_a_file_keeps_its_permissions_and_nothing_else_is_left(desk: Desk) -> None:
    script = desk.path / "run.sh"
    script.write_text("echo a")
    script.chmod(0o750)
    await desk("edit_file", path="run.sh", old="a", new="b")
    assert script.stat().st_mode & 0o777 == 0o750
    assert os.listdir(desk.path) == ["run.sh"]


async def test_e13_a_name_of_any_bytes_can_be_listed(desk: Desk) -> None:
    Path(os.fsdecode(os.fsencode(desk.path) + b"/caf\xe9")).touch()
    assert (await desk("list_directory"))["entries"][0]["name"] == "caf\ufffd"


async def test_e13_without_a_folder_there_are_no_files() -> None:
    with pytest.raises(ToolError, match="no folder"):
        await REGISTRY.execute("read_file", {"path": "x"})


async def test_e13_lines_are_found(desk: Desk) -> None:
    (desk.path / "src").mkdir()
    (desk.path / "src" / "a.py").write_text("import os\r\nprint(1)\nIMPORT\n")
    (desk.path / "b.txt").write_text("nothing\nimport me")
    (desk.path / ".git").mkdir()
    (desk.path / ".git" / "c.py").write_text("import git")
    (desk.path / "binary").write_bytes(b"import\0")
    found = await desk("grep_files", pattern=r"^import \w+$")
    assert found == {
        "matches": [
            {"path": "b.txt", "line": 2, "text": "import me"},
            {"path": "src/a.py", "line": 1, "text": "import os"},
        ],
        "files_searched": 3,
        "files_skipped": 1,
        "complete": True,
    }
    some = await desk("grep_files", pattern="import", glob="*.py", ignore_case=True)
    assert [match["line"] for match in some["matches"]] == [1, 3]
    one = await desk("grep_files", pattern="import", path="src/a.py", max_matches=1)
    assert [match["path"] for match in one["matches"]] == ["src/a.py"]
    inside = await desk("grep_files", pattern="import", path=".git")
    assert [match["path"] for match in inside["matches"]] == [".git/c.py"]


async def test_e13_a_search_is_bounded_and_says_so(desk: Desk) -> None:
    (desk.path / "long.txt").write_text("a\n" * 500 + "a" * 10_000)
    found = await desk("grep_files", pattern="a", max_matches=100)
    assert (len(found["matches"]), found["complete"]) == (100, False)
    assert "100 lines" in found["note"]
    last = await desk("grep_files", pattern="a{1000}")
    assert len(last["matches"][0]["text"]) == 300


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "[", "(?:a{1000}){1000}"])
async def test_e13_a_pattern_that_cannot_be_used_is_refused(desk: Desk, pattern: str) -> None:
    assert "pattern" in await desk.refuses("grep_files", pattern=pattern)
