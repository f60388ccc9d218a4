"""X5 with X10: what a task has added on one machine is read on any other."""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.core import url_to_fs

from backburner import Backburner
from backburner.model.errors import ArtifactsUnreachable, NotFound
from backburner.model.states import ErrorKind, State
from backburner.serve import Binding, serving
from tests.nodes.conftest import NewWorker
from tests.s3_server import BUCKET, keys_of, s3_server
from tests.serve.client import Api
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]

_ADD = "printf %s {text} > {name}; backburner artifact {name}"
_WAIT = "while [ ! -e {go} ]; do sleep 0.1; done"


@pytest.fixture(autouse=True)
def program_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs call `backburner` by its name."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def folder_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that every machine has mounted."""
    monkeypatch.setenv("BACKBURNER_ARTIFACTS", f"file://{tmp_path}/depot")
    return tmp_path / "depot"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with s3_server(tmp_path / "s3.log") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        address = f"s3://{BUCKET}/some/folder"
        monkeypatch.setenv("BACKBURNER_ARTIFACTS", address)
        yield address


@pytest.fixture
def dead_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Applications look for dead machines often."""
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", "2")


@pytest.fixture
async def elsewhere(
    new_home: Callable[[], Path], address: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Backburner]:
    """An application on a machine of its own, opened after the place of artifacts is known."""
    monkeypatch.setenv("BACKBURNER_HOME", str(new_home()))
    async with Backburner.open(address) as opened:
        yield opened


def _names(document: dict[str, Any]) -> list[str]:
    return [each["name"] for each in document["artifacts"]]


async def test_x5_who_hears_of_the_end_finds_the_files_of_another_machine(
    folder_for_all: Path, elsewhere: Backburner, new_worker: NewWorker
) -> None:
    new_worker()
    session = elsewhere.session("chat")
    task = await session.run(
        "mkdir work && cd work\n"
        + _ADD.format(text="hello", name="plain.txt")
        + "\nbackburner artifact --name '../up*' plain.txt",
        cwd=str(folder_for_all.parent),
    )
    async for signal in session.signals():
        assert signal.task == task.id
        break
    await task.refresh()
    await task.output()
    assert json.loads(Path(task.document()["paths"]["result"]).read_text()) == {
        "status": "succeeded",
        "exit_code": 0,
    }
    assert _names(task.document()) == ["_._up*", "plain.txt"]
    for name in _names(task.document()):
        path = Path(await task.artifact(name))
        assert path.read_text() == "hello"
        assert path.is_relative_to(str(elsewhere.home.root))
    for name in ("nothing", "../plain.txt", ".of", "/etc/passwd", "plain.txt\0"):
        with pytest.raises(NotFound):
            await task.artifact(name)
    # Nothing is left of it when it is forgotten.
    assert list(folder_for_all.glob("*/*"))
    assert await wait_until_async(lambda: elsewhere.prune(0)) == 1
    assert not list(folder_for_all.glob("*"))


async def test_x5_a_server_of_the_api_gives_out_files_of_another_machine(
    folder_for_all: Path, elsewhere: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    new_worker()
    task = await elsewhere.session("chat").run(
        f"cd {tmp_path}; {_ADD.format(text='over', name='http.txt')}"
    )
    await task.wait(timeout=60)
    async with serving(elsewhere, Binding(port=0)) as server:
        api = Api(elsewhere, server)
        (listed,) = (await api.json(f"/v1/tasks/{task.id}/artifacts"))["items"]
        assert (listed["name"], listed["bytes"]) == ("http.txt", 4)
        assert (await api.get(f"/v1/tasks/{task.id}/artifacts/http.txt")).content == b"over"
        assert (await api.get(f"/v1/tasks/{task.id}/artifacts/other.txt")).status_code == 404
        await api.close()


async def test_x5_artifacts_in_a_bucket(
    bucket: str, elsewhere: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    new_worker()
    big = tmp_path / "big"
    big.write_bytes(os.urandom(12 * 1024 * 1024))  # in several parts
    task = await elsewhere.session("chat").run(f"backburner artifact {big}")
    await task.wait(timeout=60)
    (listed,) = task.document()["artifacts"]
    assert (listed["name"], listed["bytes"]) == ("big", 12 * 1024 * 1024)
    assert listed["path"].startswith(f"{bucket}/{task.id}.1.")
    assert Path(await task.artifact("big")).read_bytes() == big.read_bytes()
    assert await wait_until_async(lambda: elsewhere.prune(0)) == 1
    files, path = url_to_fs(bucket, skip_instance_cache=True)
    assert await asyncio.to_thread(files.find, path) == []


async def test_x2_a_worker_that_died_does_not_lose_what_its_task_has_added(
    folder_for_all: Path, elsewhere: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    worker = new_worker()
    task = await elsewhere.session("chat").run(
        f"cd {tmp_path}; touch began; {_WAIT.format(go='go')};"
        f" {_ADD.format(text='late', name='late.txt')}; touch added; {_WAIT.format(go='end')}"
    )
    await wait_until_async((tmp_path / "began").exists)
    await asyncio.to_thread(worker.kill)
    (tmp_path / "go").touch()
    await wait_until_async((tmp_path / "added").exists)
    worker.start()
    (tmp_path / "end").touch()
    await task.wait(timeout=60)
    assert task.state is State.SUCCEEDED
    assert Path(await task.artifact("late.txt")).read_text() == "late"


async def test_e11_what_a_dead_machine_had_brought_stays_readable(
    folder_for_all: Path, elsewhere: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    soon = ("--dead-after", "2")
    dying, _ = new_worker("--queue", "one", *soon), new_worker("--queue", "two", *soon)
    await elsewhere.set_queue("one", 5)
    task = await elsewhere.session("chat").run(
        f"cd {tmp_path}; {_ADD.format(text='early', name='early.txt')}; {_WAIT.format(go='go')}",
        queue="one",
    )
    await wait_until_async(lambda: _lists(task, 1))
    await asyncio.to_thread(dying.kill)
    await task.wait(timeout=60)
    assert task.error is not None
    assert task.error.kind is ErrorKind.ORPHANED
    assert Path(await task.artifact("early.txt")).read_text() == "early"
    (tmp_path / "go").touch()


@pytest.mark.usefixtures("folder_for_all", "dead_soon")
async def test_x2_who_declares_a_machine_dead_lists_all_that_it_had_brought(
    elsewhere: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    """An application that carries out work of its own, and has fetched one of two files."""
    elsewhere.tool(background=True)(_nothing)
    await elsewhere.runs.begin()
    dying = new_worker("--dead-after", "2")
    task = await elsewhere.session("chat").run(
        f"cd {tmp_path}; {_ADD.format(text='1', name='1.txt')};"
        f" {_ADD.format(text='2', name='2.txt')}; {_WAIT.format(go='go')}"
    )
    await wait_until_async(lambda: _lists(task, 2))
    await task.artifact("1.txt")
    await asyncio.to_thread(dying.kill)
    await task.wait(timeout=60)
    assert task.error is not None
    assert task.error.kind is ErrorKind.ORPHANED
    assert _names(task.document()) == ["1.txt", "2.txt"]
    assert Path(await task.artifact("2.txt")).read_text() == "2"
    (tmp_path / "go").touch()


def _nothing() -> None:
    """What the application carries out."""


async def _lists(task: Any, count: int) -> bool:
    return len((await task.refresh()).document()["artifacts"]) == count


async def test_a_place_that_cannot_be_used_ends_no_task_later_than_it_must_and_is_told(
    folder_for_all: Path, elsewhere: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    worker = new_worker()
    folder_for_all.write_text("in the way")
    task = await elsewhere.session("chat").run(
        f"cd {tmp_path}; {_ADD.format(text='x', name='x.txt')}"
    )
    await wait_until_async(lambda: "cannot be used" in worker.said())
    folder_for_all.unlink()  # the end has waited for this
    await task.wait(timeout=60)
    assert Path(await task.artifact("x.txt")).read_text() == "x"


async def test_without_a_place_they_are_listed_and_stay_on_their_machine(
    elsewhere: Backburner, new_worker: NewWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = new_worker()
    task = await elsewhere.session("chat").run(
        f"cd {tmp_path}; {_ADD.format(text='x', name='x.txt')}"
    )
    await task.wait(timeout=60)
    (listed,) = task.document()["artifacts"]
    assert Path(listed["path"]).read_text() == "x"
    assert listed["path"].startswith(str(worker.home))
    with pytest.raises(ArtifactsUnreachable, match="BACKBURNER_ARTIFACTS"):
        await task.artifact("x.txt")


async def test_who_knows_another_place_is_told_which_one_it_is(
    elsewhere: Backburner,
    new_worker: NewWorker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKBURNER_ARTIFACTS", f"file://{tmp_path}/depot")
    new_worker()
    task = await elsewhere.session("chat").run(
        f"cd {tmp_path}; {_ADD.format(text='x', name='x.txt')}"
    )
    await task.wait(timeout=60)
    with pytest.raises(ArtifactsUnreachable, match=f"BACKBURNER_ARTIFACTS=file://{tmp_path}/depot"):
        await task.artifact("x.txt")


@contextlib.contextmanager
def silent_bucket() -> Generator[tuple[dict[str, str], Callable[[], bool]]]:
    """One that lets everybody in and never answers: where it is, and whether it was asked."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        place.setblocking(False)
        address = f"http://127.0.0.1:{place.getsockname()[1]}"
        let_in: list[socket.socket] = []

        def was_asked() -> bool:
            with contextlib.suppress(BlockingIOError):
                let_in.append(place.accept()[0])
            return bool(let_in)

        try:
            yield {**keys_of(address), "BACKBURNER_ARTIFACTS": f"s3://{BUCKET}/folder"}, was_asked
        finally:
            for each in let_in:
                each.close()


@pytest.mark.parametrize("ends", [False, True])
async def test_f1_who_is_told_to_leave_does_not_wait_for_a_place_that_never_answers(
    elsewhere: Backburner, new_worker: NewWorker, tmp_path: Path, ends: bool
) -> None:
    """Neither while the command runs, nor while its end waits for the file."""
    with silent_bucket() as (environment, was_asked):
        worker = new_worker(forked=False, **environment)
        add = _ADD.format(text="x", name="x.txt")
        wait = "true" if ends else _WAIT.format(go=tmp_path / "go")
        await elsewhere.session("chat").run(f"cd {tmp_path}; {add}; {wait}")
        await wait_until_async(was_asked)
        worker.drain()
        await wait_until_async(lambda: "takes on nothing more" in worker.said())
        worker.drain()
        # The end waits for such a place for a minute, and the library for longer.
        assert await asyncio.to_thread(worker.process.wait, 40) == 0
        (tmp_path / "go").touch()
    assert "Traceback" not in worker.said()
