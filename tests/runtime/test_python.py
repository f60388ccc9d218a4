"""C4: importable functions in processes of their own: output, result, exception, every ending."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from backburner import (
    Backburner,
    Conflict,
    ErrorKind,
    EventKind,
    Kind,
    LimitReached,
    Settings,
    SignalKind,
    State,
    Task,
    UsageError,
)
from backburner.model.redaction import HIDDEN
from tests.faults.homes import waiting_starts
from tests.waiting import wait_until, wait_until_async

FUNCTIONS = "tests.work.child.functions"

pytestmark = pytest.mark.slow


async def called(bb: Backburner, name: str, /, **arguments: Any) -> Task:
    """A function, called and ended."""
    task = await bb.session("python").call(f"{FUNCTIONS}:{name}", arguments)
    return await task.wait(60)


# What comes of it


async def test_c4_what_it_returns_is_the_result_and_what_it_prints_the_output(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await called(bb, "add", a=1, b=2)
        assert (task.state, task.exit_code, task.result) == (State.SUCCEEDED, 0, 3)
        assert task.record.kind is Kind.PYTHON
        assert task.record.title == f"{FUNCTIONS}:add(a=1, b=2)"
        assert (await task.output()).text == "adding\n"
        document = json.loads(Path(task.document()["paths"]["result"]).read_text())
        assert document == {"status": "succeeded", "exit_code": 0, "result": 3}


async def test_c4_its_output_is_there_as_it_is_printed(shared_home: Path, tmp_path: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        go = tmp_path / "go"
        task = await bb.session("python").call(
            f"{FUNCTIONS}:say_and_wait", {"text": "half", "file": str(go)}
        )

        async def said() -> bool:  # the end of the line comes by itself
            return (await task.output()).text == "half\n"

        await wait_until_async(said)
        assert task.state is State.RUNNING
        go.touch()
        assert (await task.wait(60)).result == "waited"


async def test_c2_standard_error_is_kept_apart(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        output = await (await called(bb, "both_streams")).output()
        assert output.text == "out one\nout two\n"
        assert output.stderr_text == "err one\nerr two\n"


async def test_c4_an_exception_is_recorded_with_its_traceback(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await called(bb, "raises")
        assert (task.state, task.exit_code) == (State.FAILED, None)
        assert task.error is not None
        assert task.error.kind is ErrorKind.ERROR
        assert task.error.message == f"ValueError: no good: api_key={HIDDEN}"
        said = (await task.output()).stderr_text or ""
        assert said.startswith("Traceback (most recent call last):")
        assert "KeyError: 'first'" in said
        assert "functions.py" in said
        assert "carrying.py" not in said, "where it was called from is of no use to anybody"
        (signal,) = [each for each in await bb.session("python").told() if each.task == task.id]
        assert "ValueError: no good" in signal.text


async def test_c4_an_exception_without_a_text_is_one_too(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await called(bb, "raises_silently")
        assert task.error is not None
        assert task.error.message.startswith("Silent")


async def test_c4_asynchronous_functions_are_run(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        assert (await called(bb, "later", n=4)).result == [4]


@pytest.mark.parametrize(
    ("what", "result"), [("nothing", None), ("nested", {"a": [1, {"b": None}]}), ("outcome", [1])]
)
async def test_c4_a_result_is_json(shared_home: Path, what: str, result: Any) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await called(bb, "gives", what=what)
        assert (task.state, task.result) == (State.SUCCEEDED, result)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("a set", "no JSON"),
        ("not a number", "no JSON"),
        ("too much", "longer than 1024 KiB"),
        ("too deep", "nested deeper"),
    ],
)
async def test_c4_what_is_no_json_is_a_clear_failure(
    shared_home: Path, what: str, message: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await called(bb, "gives", what=what)
        assert task.error is not None
        assert (task.error.kind, task.result) == (ErrorKind.ERROR, None)
        assert message in task.error.message


async def test_c4_a_copy_of_the_process_does_not_speak_for_it(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        assert (await called(bb, "comes_back_twice")).result == "first"


async def test_c4_an_outcome_that_cannot_be_read_is_no_success(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await called(bb, "breaks_its_outcome")
        assert task.error is not None
        assert (task.error.kind, task.result) == (ErrorKind.ERROR, None)


async def test_c4_an_outcome_without_success_fails_and_keeps_its_result(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await called(bb, "gives", what="failure")
        assert task.error is not None
        assert (task.error.message, task.result) == ("not today", {"left": 3})


@pytest.mark.parametrize(
    ("how", "kind", "code"),
    [
        ("exit 0", None, 0),
        ("exit 3", ErrorKind.EXIT, 3),
        ("exit text", ErrorKind.EXIT, 1),
        ("_exit 4", ErrorKind.EXIT, 4),
        ("abort", ErrorKind.EXIT, 128 + signal.SIGABRT),
        ("kill", ErrorKind.KILLED, None),
        ("late", ErrorKind.EXIT, 5),
    ],
)
async def test_c4_every_way_to_end_is_told_truthfully(
    shared_home: Path, how: str, kind: ErrorKind | None, code: int | None
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await called(bb, "leaves", how=how)
        assert (task.error.kind if task.error else None, task.exit_code) == (kind, code)
        if how == "late":
            assert task.result == "returned before"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_such_package.module:function", "there is no module 'no_such_package'"),
        (f"{FUNCTIONS}:no_such", "has no function 'no_such'"),
        (f"{FUNCTIONS}:NO_FUNCTION", "is not a function"),
        ("tests.work.child.broken:function", "cannot be imported: ZeroDivisionError"),
    ],
)
async def test_c4_what_cannot_be_imported_could_not_start(
    shared_home: Path, reference: str, message: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await (await bb.session("python").call(reference)).wait(60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.SPAWN
        assert message in task.error.message


@pytest.mark.parametrize(
    "reference", ["", "module", "module:", ":f", "a b:f", "m:f()", "__main__:f", "m:f:g", "../m:f"]
)
async def test_c4_what_names_no_function_is_refused_at_once(
    shared_home: Path, reference: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        with pytest.raises(UsageError):
            await bb.session("refused").call(reference)
        assert await bb.session("refused").tasks() == []


@pytest.mark.parametrize(
    "arguments",
    [
        *({"a": object()}, {"a": float("inf")}, {1: 2}, [1], {"a": "x" * 2_000_000}),
        {"a": json.loads("[" * 300 + "]" * 300)},
    ],
)
async def test_c4_arguments_that_are_no_json_are_refused_at_once(
    shared_home: Path, arguments: Any
) -> None:
    async with Backburner.open(shared_home) as bb:
        with pytest.raises(UsageError):
            await bb.session("refused").call(f"{FUNCTIONS}:add", arguments)


# What it is given


async def test_c4_it_runs_where_and_with_what_the_caller_says(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("python").call(
            f"{FUNCTIONS}:where", cwd=tmp_path, env={"FLAVOUR": "mint"}
        )
        await task.wait(60)
        assert task.result["cwd"] == str(tmp_path)
        assert task.result["flavour"] == "mint"


async def test_c4_modules_are_found_where_the_caller_finds_them(
    shared_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def f():\n    return 'found'\n")
    (tmp_path / "json.py").write_text("raise SystemExit('nobody may load this')\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    async with Backburner.open(shared_home) as bb:
        task = await (await bb.session("python").call("only_here:f")).wait(60)
        assert task.result == "found"


async def test_d9_secret_arguments_are_nowhere_on_disk(home: Path) -> None:
    secret = "open sesame 4711"
    async with Backburner.open(home) as bb:
        task = await bb.session("s").call(
            f"{FUNCTIONS}:raises", {"password": secret}, env={"API_TOKEN": "hush"}
        )
        await task.wait(60)
        assert task.error is not None
        assert task.error.message == f"ValueError: no good: api_key={HIDDEN} {HIDDEN}"
        assert task.record.spec["arguments"] == {"password": HIDDEN}
        assert task.record.spec["env"] == {"API_TOKEN": HIDDEN}
        assert secret not in json.dumps(task.document())
        wait_until(lambda: not waiting_starts(home))
    found = [
        path for path in home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert found == []


async def test_d9_a_call_with_secrets_cannot_be_made_again(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await called(bb, "raises", password="swordfish")
        with pytest.raises(UsageError, match="secret"):
            await task.rerun()


async def test_c4_a_call_can_be_made_again(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await called(bb, "add", a=3, b=4)
        again = await (await task.rerun()).wait(60)
        assert (again.result, again.record.kind) == (7, Kind.PYTHON)
        assert again.id != task.id


async def test_e12_the_same_id_is_the_same_call(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("python")
        first = await session.call(f"{FUNCTIONS}:add", {"a": 1, "b": 1}, id="once")
        again = await session.call(f"{FUNCTIONS}:add", {"a": 1, "b": 1}, id="once")
        assert again.record.seq == first.record.seq
        with pytest.raises(Conflict):
            await session.call(f"{FUNCTIONS}:add", {"a": 1, "b": 2}, id="once")
        with pytest.raises(Conflict):
            await session.run("true", id="once")


async def test_e3_python_tasks_have_a_limit_of_their_own(home: Path, tmp_path: Path) -> None:
    settings = Settings(python_per_session=1)
    async with Backburner.open(home, settings=settings) as bb:
        session = bb.session("s")
        task = await session.call(f"{FUNCTIONS}:sleeps", {"file": str(tmp_path / "up")})
        with pytest.raises(LimitReached, match="1 active python tasks, and 1 is the limit"):
            await session.call(f"{FUNCTIONS}:add", {"a": 1, "b": 2})
        await (await session.run("true")).wait(30)
        await task.stop(force=True)


# As any task


async def test_x9_a_function_that_raises_is_tried_again(shared_home: Path, tmp_path: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("python").call(
            f"{FUNCTIONS}:fails_until", {"file": str(tmp_path / "calls"), "times": 1}, retries=2
        )
        await task.wait(60)
        assert (task.state, task.result, task.record.attempt) == (State.SUCCEEDED, 2, 2)
        kinds = [event.kind async for event in task.events(follow=False)]
        assert kinds.count(EventKind.FAILED_TRY) == 1


async def test_a5_a_function_that_takes_too_long_is_ended(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("python").call(
            f"{FUNCTIONS}:spins", {"file": str(tmp_path / "up")}, max_runtime=1
        )
        await task.wait(60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.TIMEOUT


async def test_x9_a_function_starts_after_others_and_within_limits(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("python")
        first = await session.run("true")
        task = await session.call(
            f"{FUNCTIONS}:takes_memory", {"size": 2**31}, after=first.id, memory=400 * 2**20
        )
        await task.wait(60)
        assert task.error is not None
        assert task.error.kind in (ErrorKind.ERROR, ErrorKind.KILLED)
        assert "emory" in task.error.message


# Taking part


async def test_e5_a_function_with_a_context_takes_part(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("python").call(f"{FUNCTIONS}:talks")
        async with asyncio.timeout(60):
            async for event in task.events():
                if event.kind is EventKind.ASKED:
                    await task.refresh()
                    assert task.state is State.INPUT_REQUIRED
                    assert task.record.question is not None
                    assert task.record.question.text == "which?"
                    await task.send("this")
        await task.refresh()
        assert task.result == {"task": task.id, "answer": "this"}
        assert task.record.detail == "at it"
        assert task.record.progress is not None
        assert (task.record.progress.current, task.record.progress.label) == (1, "half of half")
        assert (await task.output()).stderr_text == "oh\n"


async def test_e12_a_function_hears_messages_once_and_in_order(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("python").call(f"{FUNCTIONS}:hears", {"count": 3})
        async with asyncio.timeout(60):
            async for event in task.events():
                if event.kind is EventKind.STARTED:
                    for text in ("one", "two\nlines", "three"):
                        await task.send(text)
        assert (await task.refresh()).result == ["one", "two\nlines", "three"]


async def test_e12_a_function_tells_and_asks_for_a_value(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("telling")
        task = await session.call(f"{FUNCTIONS}:tells")
        async with asyncio.timeout(60):
            async for event in task.events():
                if event.kind is EventKind.ASKED:
                    with pytest.raises(UsageError):
                        await task.send("many")
                    await task.send("42")
        assert (await task.refresh()).result == 42
        told = [each.record for each in await session.told()]
        assert [each.kind for each in told] == [
            *(SignalKind.MESSAGE, SignalKind.INPUT_REQUIRED, SignalKind.COMPLETED)
        ]
        assert "found one" in told[0].text


def test_c4_the_sync_door_has_it_too(shared_home: Path) -> None:
    from backburner.sync import Backburner as SyncBackburner

    with SyncBackburner.open(shared_home) as bb:
        task = bb.session("python").call(f"{FUNCTIONS}:add", {"a": 20, "b": 22})
        assert task.wait(60).result == 42
