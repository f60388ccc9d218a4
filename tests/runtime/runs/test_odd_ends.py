"""E1, E11: however a tool behaves, its run ends as it should, and the others go on."""

import asyncio
import contextlib
import itertools
import threading
from decimal import Decimal
from pathlib import Path

import pytest

from backburner import (
    Backburner,
    ConnectionRequired,
    Context,
    ErrorKind,
    Image,
    InternalError,
    Outcome,
    State,
)
from tests.runtime.runs.programs import program

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


async def test_e1_errors_of_each_kind_end_a_run_as_they_should(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def internal() -> None:
            raise InternalError("the password of the database is wrong")

        @bb.tool(background=True)
        async def unconnected() -> None:
            raise ConnectionRequired("github")

        @bb.tool(background=True)
        async def says_no() -> Outcome:
            return Outcome(success=False, summary="half done", result={"kept": 1})

        session = bb.session("s")
        tasks = [await session.spawn(name) for name in ("internal", "unconnected", "says_no")]
        for task in tasks:
            await task.wait(30)
            assert task.error is not None
            assert task.error.kind is ErrorKind.ERROR
        one, two, three = (task.error.message for task in tasks if task.error)
        assert "internal error" in one
        assert "password" not in one
        assert "github" in two
        assert (three, tasks[2].result) == ("half done", {"kept": 1})


async def test_a_run_past_its_maximum_run_time_is_ended_and_told(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def waits() -> None:
            await asyncio.Event().wait()

        task = await bb.session("s").spawn("waits", max_runtime=0.05)
        await task.wait(30)
        assert task.error is not None
        assert task.error.kind is ErrorKind.TIMEOUT


async def test_a_thread_that_cannot_be_ended_does_not_hold_its_task(home: Path) -> None:
    async with Backburner.open(home) as bb:
        free = threading.Event()

        @bb.tool(background=True)
        def blocks() -> None:
            free.wait(60)

        task = await bb.session("s").spawn("blocks")
        await task.stop(force=True)
        assert task.state is State.CANCELED
        free.set()


async def test_c3_a_run_that_does_not_end_is_given_up_though_the_record_is_busy(
    home: Path,
) -> None:
    """Each change of the record is a reason to look for stops, and the same one is found again."""
    async with Backburner.open(home) as bb:
        free = asyncio.Event()

        @bb.tool(background=True)
        async def deaf() -> None:
            while not free.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await free.wait()

        async def keep_busy() -> None:
            for kinds in itertools.cycle(([], None)):
                await bb.session("other").wish(kinds)

        task = await bb.session("s").spawn("deaf")
        busy = asyncio.create_task(keep_busy())
        await asyncio.wait_for(task.stop(grace=0.1), 30)
        assert task.state is State.CANCELED
        assert "did not heed its cancellation" in (await task.output()).text
        busy.cancel()
        free.set()


@pytest.mark.parametrize(
    "name", ["odd_progress", "odd_usage", "odd_image", "no_images", "leaves", "interrupts"]
)
async def test_whatever_a_tool_does_its_run_ends_and_others_go_on(home: Path, name: str) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def odd_progress(context: Context) -> int:
            context.progress(Decimal(1), float("nan"), unit=object())  # type: ignore[arg-type]
            return 1

        @bb.tool(background=True)
        async def odd_usage() -> Outcome:
            return Outcome(usage={"a": object()})  # type: ignore[dict-item]

        @bb.tool(background=True)
        async def odd_image() -> Outcome:
            return Outcome(images=[Image(b"x", None)])  # type: ignore[arg-type]

        @bb.tool(background=True)
        async def no_images() -> Outcome:
            return Outcome(images=None)  # type: ignore[arg-type]

        @bb.tool(background=True)
        async def leaves() -> None:
            raise GeneratorExit

        @bb.tool(background=True)
        async def interrupts() -> None:
            raise KeyboardInterrupt

        @bb.tool(background=True)
        async def works() -> int:
            return 2

        session = bb.session("s")
        task = await session.spawn(name)
        await task.wait(30)
        assert (await (await session.spawn("works")).wait(30)).result == 2


async def test_e11_one_that_no_longer_fits_does_not_hold_up_the_others(home: Path) -> None:
    first = Backburner.open(home)
    async with first:

        @first.tool(background=True, idempotent=True)
        async def changed(x: int) -> None:
            await asyncio.Event().wait()

        @first.tool(background=True, idempotent=True)
        async def same() -> None:
            await asyncio.Event().wait()

        session = first.session("s")
        tasks = [await session.spawn("changed", {"x": 1}), await session.spawn("same")]
    second = Backburner.open(home)

    @second.tool("changed", background=True, idempotent=True)
    async def changed_since(y: int) -> None: ...

    @second.tool("same", background=True, idempotent=True)
    async def same_still() -> int:
        return 3

    async with second:
        ended = [await second.session("s").task(task.id) for task in tasks]
        for task in ended:
            await task.wait(30)
        assert ended[0].error is not None
        assert ended[0].error.kind is ErrorKind.SPAWN
        assert "cannot be taken up" in ended[0].error.message
        assert ended[1].result == 3


def test_e1_an_internal_error_is_in_no_log_that_a_model_reads(home: Path) -> None:
    """Also where the application has set up no logging, which then goes to standard error."""
    source = """
import asyncio, json, sys
from backburner import Backburner, InternalError
bb = Backburner.open(sys.argv[1])
@bb.tool(background=True)
async def internal() -> None:
    raise InternalError("the database is at db.internal")
async def main():
    async with bb:
        task = await bb.session("s").spawn("internal")
        await task.wait(30)
        print(json.dumps([task.document(), (await task.output()).text]))
asyncio.run(main())
"""
    with program("-c", source, home) as running:
        shown = running.rest()
    assert "internal error" in shown
    assert "db.internal" not in shown
