"""E2 to E8: durable runs of tools that have opted in."""

import asyncio
import contextlib
import json
import threading
from pathlib import Path

import pytest

from backburner import (
    Backburner,
    Context,
    Image,
    InvalidArguments,
    LimitReached,
    Outcome,
    Settings,
    SignalState,
    State,
    Task,
    UsageError,
)
from tests.runtime.runs.programs import program
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


def result_of(task: Task) -> dict[str, object]:
    return json.loads(Path(task.document()["paths"]["result"]).read_text())


async def test_e2_what_cannot_be_spawned_is_refused_with_a_clear_error(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool
        async def foreground() -> None: ...

        @bb.tool(background=True)
        async def crawl(url: str) -> None: ...

        bb.registry.declare("elsewhere", {"type": "object"}, background=True)
        session = bb.session("s")
        for name, arguments, text in (
            ("", {}, "there is no tool ''"),
            ("craw", {}, "did you mean crawl"),
            ("foreground", {}, "cannot run in the background"),
            ("elsewhere", {}, "nothing that carries it out"),
            ("crawl", {"url": 1}, "url"),
            ("crawl", {"url": "x", "deep": True}, "deep: no such argument; it takes url"),
        ):
            with pytest.raises(UsageError, match=text):
                await session.spawn(name, arguments)
        with pytest.raises(InvalidArguments):
            await session.spawn("crawl", ["x"])  # type: ignore[arg-type]
        assert await session.tasks() == []


async def test_e2_the_title_is_the_display_name_unless_given(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True, display_name="Crawl the web")
        async def crawl() -> None: ...

        session = bb.session("s")
        assert (await session.spawn("crawl")).record.title == "Crawl the web"
        assert (await session.spawn("crawl", title="news")).record.title == "news"


async def test_e3_five_active_runs_a_session_are_the_most_and_ends_free_places(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate = asyncio.Event()

        @bb.tool(background=True)
        async def waits() -> None:
            await gate.wait()

        session = bb.session("s")
        started = await asyncio.gather(
            *(session.spawn("waits") for _ in range(9)), return_exceptions=True
        )
        refused = [each for each in started if isinstance(each, LimitReached)]
        assert len(refused) == 4
        assert "5 is the limit" in str(refused[0])
        folders = home / "tasks"
        await wait_until_async(lambda: len(list(folders.glob("*"))) == 5)  # of those that began
        assert await bb.session("other").spawn("waits")
        gate.set()
        for task in await session.tasks():
            await task.wait(30)
        assert await session.spawn("waits")


async def test_e3_the_limit_of_a_session_holds_across_processes(home: Path) -> None:
    source = """
import asyncio, sys
from backburner import Backburner, LimitReached
bb = Backburner.open(sys.argv[1])
@bb.tool(background=True)
async def waits() -> None:
    await asyncio.Event().wait()
async def main():
    async with bb:
        print("ready", flush=True)
        sys.stdin.readline()
        results = await asyncio.gather(
            *(bb.session("s").spawn("waits") for _ in range(4)), return_exceptions=True)
        print(sum(not isinstance(each, LimitReached) for each in results), flush=True)
        sys.stdin.readline()
asyncio.run(main())
"""
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(program("-c", source, home)) for _ in range(4)]
        assert [other.line() for other in others] == ["ready"] * 4
        for other in others:
            other.say("go")
        assert sum(int(other.line()) for other in others) == 5


async def test_e3_sixty_four_runs_a_process_are_the_most(home: Path) -> None:
    async with Backburner.open(home, settings=Settings(tools_per_worker=3)) as bb:

        @bb.tool(background=True)
        async def waits() -> None:
            await asyncio.Event().wait()

        started = await asyncio.gather(
            *(bb.session(f"s{n}").spawn("waits") for n in range(5)), return_exceptions=True
        )
        assert sum(isinstance(each, Task) for each in started) == 3
        with pytest.raises(LimitReached, match="this process has 3"):
            await bb.session("t").spawn("waits")
        (first, *_) = [each for each in started if isinstance(each, Task)]
        await first.stop()
        assert await bb.session("t").spawn("waits")
    assert Settings().tools_per_worker == 64


async def test_e4_every_end_leaves_its_log_and_its_result(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def works() -> dict[str, int]:
            return {"pages": 3}

        @bb.tool(background=True)
        async def fails() -> None:
            raise RuntimeError("the site is down")

        @bb.tool(background=True)
        async def waits() -> None:
            await asyncio.Event().wait()

        session = bb.session("s")
        good, bad = await session.spawn("works"), await session.spawn("fails")
        stopped = await session.spawn("waits")
        await stopped.stop()
        for task in (good, bad, stopped):
            await task.wait(30)
            assert Path(task.document()["paths"]["log"]).exists()
        assert result_of(good) == {
            "status": "succeeded", "exit_code": None, "result": {"pages": 3},
        }  # fmt: skip
        assert result_of(bad)["status"] == "failed"
        assert "the site is down" in str(result_of(bad)["error"])
        assert result_of(stopped)["status"] == "canceled"
        assert "stopped on request" in (await stopped.output()).text


async def test_e5_what_a_run_says_is_readable_while_it_runs(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate = asyncio.Event()

        @bb.tool(background=True)
        async def talks(context: Context) -> Outcome:
            await context.status("fetching")
            context.output("stdout", "one\ntwo\n")
            context.output("stderr", "oh\n")
            context.progress(3, 10, "pages", "news")
            await gate.wait()
            context.status("done, nearly")
            return Outcome(summary="3 pages", result={"n": 3}, raw_output="<html>")

        task = await bb.session("s").spawn("talks")

        async def seen() -> bool:
            await task.refresh()
            return task.record.progress is not None

        await wait_until_async(seen)
        assert task.document()["progress"] == {
            "current": 3, "total": 10, "unit": "pages", "label": "news",
        }  # fmt: skip
        assert task.record.detail == "fetching"
        text = (await task.output()).text
        assert text == "[stdout] one\n[stdout] two\n[stderr] oh\n"
        gate.set()
        await task.wait(30)
        assert (task.record.summary, task.result) == ("3 pages", {"n": 3})
        assert task.record.detail == "done, nearly"
        assert result_of(task)["raw_output"] == "<html>"


async def test_e6_the_log_of_a_run_is_bounded_and_says_what_is_left_out(home: Path) -> None:
    settings = Settings(log_head=4096, log_tail=8192)
    async with Backburner.open(home, settings=settings) as bb:

        @bb.tool(background=True)
        async def floods(context: Context) -> None:
            for number in range(40_000):
                context.output("stdout", f"line {number}\n")

        task = await bb.session("s").spawn("floods")
        await task.wait(60)
        output = task.document()["output"]
        assert output["dropped_bytes"] > 0
        assert Path(task.document()["paths"]["log"]).stat().st_blocks * 512 < 64 * 1024
        text = (await task.output(max_chars=None)).text
        assert text.startswith("[stdout] line 0\n")
        assert text.endswith("[stdout] line 39999\n")


async def test_e7_a_cancel_reaches_a_run_of_another_process(home: Path) -> None:
    source = """
import asyncio, os, sys
from backburner import Backburner
bb = Backburner.open(sys.argv[1])
@bb.tool(background=True)
async def waits() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        os.write(1, b"cancelled\\n")
async def main():
    async with bb:
        task = await bb.session("s").spawn("waits")
        os.write(1, task.id.encode() + b"\\n")
        await task.wait()
asyncio.run(main())
"""
    with program("-c", source, home) as other:
        task_id = other.line()
        async with Backburner.open(home) as bb:
            task = await bb.session("s").task(task_id)
            await task.stop()
            assert task.state is State.CANCELED
        assert other.rest() == "cancelled\n"


async def test_e8_one_signal_at_the_end_and_none_where_it_is_not_wanted(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def works() -> None: ...

        session = bb.session("s")
        loud = await session.spawn("works", title="loud")
        quiet = await session.spawn("works", signal_on_completion=False)
        for task in (loud, quiet):
            await task.wait(30)
        signals = await session.told()
        assert [signal.task for signal in signals] == [loud.id]
        assert signals[0].record.state is SignalState.PENDING
        assert "loud" in signals[0].text


async def test_e1_images_travel_with_a_result(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def draws() -> Outcome:
            return Outcome(result="drawn", images=[Image(b"\x89PNG", "image/png", "plot.png")])

        task = await bb.session("s").spawn("draws")
        await task.wait(30)
        (artifact,) = task.document()["artifacts"]
        assert artifact["name"] == "plot.png"
        assert Path(artifact["path"]).read_bytes() == b"\x89PNG"
        inside = await bb.session("s").invoke("draws")
        assert inside.images[0].data == b"\x89PNG"


async def test_c4_prints_of_concurrent_tools_each_go_to_their_own_log(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Backburner.open(home) as bb:
        barrier = threading.Barrier(2, timeout=30)

        @bb.tool(background=True)
        def prints(name: str) -> None:
            barrier.wait()
            for number in range(3):
                print(f"{name}{number}")

        tasks = [await bb.session("s").spawn("prints", {"name": name}) for name in "ab"]
        for task in tasks:
            await task.wait(30)
        print("mine")
        assert [(await task.output()).text for task in tasks] == [
            "".join(f"[stdout] {name}{number}\n" for number in range(3)) for name in "ab"
        ]
    assert capsys.readouterr().out == "mine\n"


async def test_e12_the_same_id_starts_once(home: Path) -> None:
    async with Backburner.open(home) as bb:
        count = 0

        @bb.tool(background=True)
        async def counts() -> int:
            nonlocal count
            count += 1
            return count

        session = bb.session("s")
        tasks = await asyncio.gather(*(session.spawn("counts", id="mine") for _ in range(4)))
        for task in tasks:
            await task.wait(30)
        assert ({task.id for task in tasks}, count) == ({"mine"}, 1)
