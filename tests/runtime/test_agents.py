"""B4, B7, C4: sub-agents as tasks, through the public API."""

import asyncio
import threading
from pathlib import Path

import pytest

from backburner import (
    AgentAnswer,
    AgentRequest,
    Backburner,
    Conflict,
    Context,
    ErrorKind,
    Image,
    InternalError,
    Kind,
    LimitReached,
    Outcome,
    Settings,
    State,
    ToolError,
    UsageError,
    sync,
)
from tests.runtime.asking import PNG, said, told
from tests.runtime.schedules.times import expect_since, minutes_ago
from tests.waiting import wait_until_async


async def test_b4_an_answer_is_the_result_and_the_session_is_told_once(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        bb.agent("loud", lambda prompt: prompt.upper())
        session = bb.session("b4")
        prompt = "Sum up the release notes of the last two years, and be quick about it, please"
        task = await session.ask(prompt, agent="loud")
        assert task.id.startswith("bg_")
        await task.wait(30)
        assert (task.state, task.result) == (State.SUCCEEDED, prompt.upper())
        assert task.record.kind is Kind.AGENT
        assert len(task.record.title) == 60
        assert task.record.title.endswith("…")
        assert await told(session, task) == ["completed"]
        assert Path(task.document()["paths"]["result"]).exists()


async def test_c4_what_an_agent_reports_is_there_while_it_runs(shared_home: Path) -> None:
    go = asyncio.Event()

    async def working(request: AgentRequest, context: Context) -> AgentAnswer:
        context.status("reading")
        context.output("stdout", "page 1\n")
        await go.wait()
        return AgentAnswer("read", usage={"input_tokens": 3})

    async with Backburner.open(shared_home) as bb:
        bb.agent("reader", working)
        task = await bb.session("c4").ask("read", agent="reader", title="Reading")

        async def seen() -> bool:
            return "page 1" in (await task.output()).text and task.record.detail == "reading"

        await wait_until_async(seen)
        assert task.state is State.RUNNING
        go.set()
        await task.wait(30)
        assert task.record.title == "Reading"
        assert task.record.usage == {"input_tokens": 3}
        assert task.document()["usage"] == {"input_tokens": 3}


async def test_c4_what_an_agent_prints_is_its_output(shared_home: Path) -> None:
    def printing(prompt: str) -> str:
        print(f"about to {prompt}")
        return "done"

    async with Backburner.open(shared_home) as bb:
        bb.agent("printing", printing)
        task = await bb.session("c4").ask("print", agent="printing")
        await task.wait(30)
        assert "[stdout] about to print" in (await task.output()).text


class Ending:
    """Ends as its prompt says, and tells how often it was closed."""

    closed: list[str]

    def __init__(self, closed: list[str]) -> None:
        self.closed = closed

    async def run(self, request: AgentRequest, context: Context) -> Outcome | str:
        match request.prompt:
            case "raise":
                raise ValueError("the password=hunter22 is wrong")
            case "tool error":
                raise ToolError("it cannot be done", remedy="ask for less")
            case "internal":
                raise InternalError("the cluster at 10.0.0.7 is down")
            case "exit":
                raise SystemExit(3)
            case "no success":
                return Outcome(success=False, summary="found nothing", result={"found": 0})
            case "wait":
                context.output("stdout", "waiting\n")
                await asyncio.Event().wait()
            case "cancel itself":
                raise asyncio.CancelledError
            case _:
                pass
        return "an answer"

    async def close(self) -> None:
        self.closed.append("closed")


@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        ("raise", "ValueError: the password=[redacted] is wrong"),
        ("tool error", "ToolError: it cannot be done (ask for less)"),
        ("internal", "an internal error happened in the agent ending"),
        ("exit", "SystemExit: 3"),
        ("no success", "found nothing"),
        ("cancel itself", "CancelledError"),
    ],
)
async def test_b7_every_failure_closes_once_and_tells_once(
    shared_home: Path, prompt: str, says: str
) -> None:
    closed: list[str] = []
    async with Backburner.open(shared_home) as bb:
        bb.agent("ending", Ending(closed))
        session = bb.session(f"b7-{prompt}")
        task = await session.ask(prompt, agent="ending")
        await task.wait(30)
        assert task.state is State.FAILED
        assert task.error is not None
        assert task.error.kind is ErrorKind.ERROR
        assert says in task.error.message
        assert "10.0.0.7" not in task.error.message
        assert closed == ["closed"]
        assert await told(session, task) == ["failed"]
        if prompt == "no success":
            assert task.result == {"found": 0}


async def test_b7_a_stop_closes_once_and_tells_once(shared_home: Path) -> None:
    closed: list[str] = []
    async with Backburner.open(shared_home) as bb:
        bb.agent("ending", Ending(closed))
        session = bb.session("b7-stop")
        for force in (False, True):
            task = await session.ask("wait", agent="ending")
            await said(task, "waiting")
            await task.stop(force=force)
            assert task.state is State.CANCELED
            assert await told(session, task) == ["canceled"]
        assert closed == ["closed"] * 2


async def test_b7_a_time_out_closes_once_and_tells_once(shared_home: Path) -> None:
    closed: list[str] = []
    async with Backburner.open(shared_home) as bb:
        bb.agent("ending", Ending(closed))
        session = bb.session("b7-timeout")
        task = await session.ask("wait", agent="ending", max_runtime=0.1)
        await task.wait(30)
        assert task.error is not None
        assert task.error.kind is ErrorKind.TIMEOUT
        assert closed == ["closed"]
        assert await told(session, task) == ["failed"]


async def test_b7_an_application_that_closes_closes_its_agents(shared_home: Path) -> None:
    closed: list[str] = []
    async with Backburner.open(shared_home) as bb:
        bb.agent("ending", Ending(closed))
        session = bb.session("b7-close")
        task = await session.ask("wait", agent="ending")
        await said(task, "waiting")
    assert closed == ["closed"]
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("b7-close").task(task.id)
        await task.wait(30)
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED
        assert await told(bb.session("b7-close"), task) == ["failed"]


async def test_b5_media_of_an_answer_are_kept_and_named(shared_home: Path, tmp_path: Path) -> None:
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.7")
    media = [Image(PNG, name="chart.png"), tmp_path / "report.pdf", tmp_path / "missing.pdf"]
    async with Backburner.open(shared_home) as bb:
        bb.agent("artist", lambda _: AgentAnswer("Here.", media))
        task = await bb.session("b5").ask("draw", agent="artist")
        await task.wait(30)
        chart, report = task.result["media"]
        assert task.result["text"] == "Here."
        assert task.record.summary == "Here."
        assert Path(chart).read_bytes() == PNG
        assert Path(report).read_bytes() == b"%PDF-1.7"
        names = [each["name"] for each in task.document()["artifacts"]]
        assert names == ["chart.png", "report.pdf"]
        assert "there is no file" in (await task.output()).text


async def test_b5_pictures_of_an_outcome_are_kept_once_and_its_own_keys_left_alone(
    shared_home: Path,
) -> None:
    given = Outcome(result={"media": "mine"}, images=[Image(PNG)])
    async with Backburner.open(shared_home) as bb:
        bb.agent("artist", lambda _: given)
        task = await bb.session("b5").ask("draw", agent="artist")
        await task.wait(30)
        assert task.result == {"media": "mine"}
        assert [each["name"] for each in task.document()["artifacts"]] == ["image-1.png"]


async def test_e12_the_same_id_is_the_same_task(shared_home: Path) -> None:
    asked: list[str] = []
    async with Backburner.open(shared_home) as bb:
        bb.agent("note", lambda prompt: asked.append(prompt) or "ok")
        session = bb.session("e12")
        first = await session.ask("once", agent="note", id="only-one")
        second = await session.ask("once", agent="note", id="only-one")
        assert first.id == second.id == "only-one"
        await second.wait(30)
        assert asked == ["once"]
        with pytest.raises(Conflict):
            await session.ask("another", agent="note", id="only-one")


async def test_what_cannot_be_asked_is_refused_at_once(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("refused")
        for prompt in ("", " \n"):
            with pytest.raises(UsageError, match="no prompt"):
                await session.ask(prompt)
        with pytest.raises(UsageError, match="no agent 'nobody'"):
            await session.ask("x", agent="nobody")
        with pytest.raises(UsageError, match="longer than 1024 KiB"):
            await session.ask("x" * 1024 * 1025)
        with pytest.raises(UsageError, match="wake"):
            await session.ask("x", wake="loudly")
        with pytest.raises(UsageError, match="maximum run time"):
            await session.ask("x", max_runtime=0)
        with pytest.raises(UsageError, match="cannot be an id"):
            await session.ask("x", id="../x")
        assert await session.tasks() == []


async def test_e3_so_many_agents_of_one_session_and_no_more(shared_home: Path) -> None:
    settings = Settings(agents_per_session=2)
    async with Backburner.open(shared_home, settings=settings) as bb:
        bb.agent("ending", Ending([]))
        session = bb.session("e3")
        tasks = [await session.ask("wait", agent="ending") for _ in range(2)]
        with pytest.raises(LimitReached, match="2"):
            await session.ask("wait", agent="ending")
        for task in tasks:
            await task.stop()
        assert await session.ask("quick", agent="ending")


async def test_e12_a_silent_agent_tells_nothing_and_a_bad_prompt_is_made_good(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        bb.agent("echo", lambda prompt: prompt)
        session = bb.session("silent")
        task = await session.ask("caf\udce9", agent="echo", wake="silent")
        await task.wait(30)
        assert task.result == "caf?"
        assert await told(session, task) == []


def test_the_same_without_await(shared_home: Path) -> None:
    bb = sync.Backburner.open(shared_home)
    bb.agent("early", lambda prompt: f"early {prompt}")
    with bb:
        bb.agent("late", lambda prompt: f"late {prompt}")
        session = bb.session("sync")
        for name in ("early", "late"):
            assert session.ask("x", agent=name).wait(30).result == f"{name} x"


@pytest.mark.slow
async def test_e9_a_scheduled_prompt_is_taken_up_by_an_application_that_has_the_agent(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        bb.agent("loud", lambda prompt: prompt.upper())
        session = bb.session("e9")
        schedule = await session.schedule("0 0 1 1 *", {"ask": "good morning", "agent": "loud"})
        await expect_since(bb, schedule, minutes_ago(2))
        (task,) = await wait_until_async(session.tasks)
        await task.wait(30)
        assert (task.state, task.result) == (State.SUCCEEDED, "GOOD MORNING")
        await schedule.cancel()
        with pytest.raises(UsageError, match="no agent 'nobody'"):
            await session.schedule("0 0 1 1 *", {"ask": "x", "agent": "nobody"})


async def test_c3_a_function_that_never_returns_is_let_go_of(shared_home: Path) -> None:
    """A thread cannot be ended; its task is, and its answer is dropped."""
    go = threading.Event()

    def stuck(prompt: str) -> str:
        print("stuck")
        go.wait(30)
        return "too late"

    async with Backburner.open(shared_home) as bb:
        bb.agent("stuck", stuck)
        task = await bb.session("c3").ask("x", agent="stuck")
        await said(task, "stuck")
        await task.stop(force=True)
        assert task.state is State.CANCELED
        go.set()
        assert (await task.refresh()).result is None
