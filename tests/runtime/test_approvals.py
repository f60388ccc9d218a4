"""C3: who stops a task of another session of the same owner asks that session first."""

import asyncio
from pathlib import Path

import pytest

from backburner import (
    Backburner,
    NobodyAsked,
    NotAllowed,
    NotFound,
    Question,
    Session,
    SignalKind,
    State,
    Task,
    TimeIsUp,
    UsageError,
)
from tests.faults.victims import unique_seconds
from tests.unheard import cancel_unheard, in_record
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


async def sleeper(session: Session) -> Task:
    return await session.run(f"sleep {unique_seconds()}", title="deploy to production")


async def approval(task: Task) -> Question:
    """The one that is open, once it is asked."""

    async def asked() -> Question | None:
        found = [each for each in await task.questions() if each.approval and each.open]
        return found[0] if found else None

    return await wait_until_async(asked)


async def test_c3_the_own_task_is_stopped_at_once(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("own", owner="ada")
        task = await sleeper(session)
        stopped = await session.stop(task.id[:12], force=True)
        assert (stopped.id, stopped.state) == (task.id, State.CANCELED)
        again = await session.stop(task.id)
        assert again.record == stopped.record, "a finished one answers with its record"


async def test_c3_another_sessions_task_is_stopped_when_that_session_agrees(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        theirs, ours = bb.session("theirs", owner="ada"), bb.session("ours", owner="ada")
        task = await sleeper(theirs)
        stopping = asyncio.create_task(ours.stop(task.id, force=True))
        question = await approval(task)
        assert question.asker == "ours"
        assert (await task.refresh()).record.question is None
        (signal,) = await theirs.told()
        assert signal.record.kind is SignalKind.INPUT_REQUIRED
        assert "'ours' wants to stop it" in signal.text
        with pytest.raises(UsageError, match="give one of yes, no"):
            await task.send("perhaps", question=question.id)
        assert not stopping.done()
        assert await task.send("yes", question=question.id) == question.id
        stopped = await asyncio.wait_for(stopping, 30)
        assert (stopped.id, stopped.state) == (task.id, State.CANCELED)
        assert await ours.told() == []


async def test_c3_a_plain_answer_is_not_taken_for_input(shared_home: Path) -> None:
    """It is not the job that asks, and it must not read what was meant for the other session."""
    async with Backburner.open(shared_home) as bb:
        theirs, ours = (bb.session(name, owner="ada") for name in ("in-theirs", "in-ours"))
        task = await theirs.run("cat", stdin=True)
        stopping = asyncio.create_task(ours.stop(task.id, force=True))
        question = await approval(task)
        (signal,) = await theirs.told()
        assert f"backburner send --question {question.id} {task.id} yes" in signal.text
        with pytest.raises(NobodyAsked, match=f"--question {question.id}"):
            await task.send("yes")
        assert await task.send("for the job\n", raw=True) is None

        async def reads() -> bool:
            return (await task.output()).text == "for the job\n"

        await wait_until_async(reads)
        await task.send("no", question=question.id)
        with pytest.raises(NotAllowed):
            await stopping
        assert await task.send("a line") is None
        await task.stop(force=True)


async def test_c3_what_was_granted_happens_though_whoever_asked_is_gone(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        theirs = bb.session("dead-theirs", owner="ada")
        task = await sleeper(theirs)
        # As of a process that was killed: it asked, and withdraws nothing.
        asked = await bb.store.ask_approval(task.id, "ada", "gone", "stop-1", "?", grace_s=0)
        assert asked is not None
        await task.send("yes", question="stop-1")
        assert (await task.wait(30)).state is State.CANCELED


async def test_c3_what_has_not_started_leaves_its_files_when_that_is_granted(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        theirs = bb.session("queued-theirs", owner="ada")
        first = await sleeper(theirs)
        task = await theirs.run("true", after=first.id)
        await bb.store.ask_approval(task.id, "ada", "gone", "stop-1", "?", grace_s=0)
        await task.send("yes", question="stop-1")
        document = (await task.refresh()).document()
        assert document["state"] == "canceled"
        assert Path(document["paths"]["result"]).exists()
        await first.stop(force=True)


async def test_c3_a_refusal_leaves_it_alone(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        theirs, ours = bb.session("no-theirs", owner="ada"), bb.session("no-ours", owner="ada")
        task = await sleeper(theirs)
        stopping = asyncio.create_task(ours.stop(task.id))
        question = await approval(task)
        await task.send("no", question=question.id)
        with pytest.raises(NotAllowed) as caught:
            await asyncio.wait_for(stopping, 30)
        assert "deploy" not in str(caught.value)
        assert (await task.refresh()).state in (State.QUEUED, State.RUNNING)
        await task.stop(force=True)


async def test_c3_nobody_answers_in_time(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        theirs, ours = bb.session("late-theirs", owner="ada"), bb.session("late-ours", owner="ada")
        task = await sleeper(theirs)
        with pytest.raises(TimeIsUp, match=r"nobody allowed it within 0\.05 s"):
            await ours.stop(task.id, timeout=0.05)
        (question,) = await task.questions()
        assert question.withdrawn
        (signal,) = await theirs.told()
        assert signal.record.reason == "nobody waits for the answer"
        with pytest.raises(UsageError, match="more than 0"):
            await ours.stop(task.id, timeout=0)
        await task.stop(force=True)


async def test_c3_whoever_gives_up_waiting_withdraws(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        theirs, ours = bb.session("gone-theirs", owner="ada"), bb.session("gone-ours", owner="ada")
        task = await sleeper(theirs)
        stopping = asyncio.create_task(ours.stop(task.id))
        await approval(task)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        (question,) = await task.questions()
        assert question.withdrawn
        await task.stop(force=True)


async def test_c3_whoever_gives_up_before_hearing_that_the_question_is_on_disk_withdraws_too(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        theirs, ours = (
            bb.session("soon-theirs", owner="ada"),
            bb.session("soon-ours", owner="ada"),
        )
        task = await sleeper(theirs)
        asked = "SELECT * FROM question WHERE asker = 'soon-ours'"
        await cancel_unheard(ours.stop(task.id), lambda: in_record(shared_home, asked))
        (question,) = await task.questions()
        assert question.withdrawn
        await task.stop(force=True)


async def test_c3_a_task_that_ends_meanwhile_says_nothing_of_that(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        theirs, ours = bb.session("end-theirs", owner="ada"), bb.session("end-ours", owner="ada")
        task = await sleeper(theirs)
        stopping = asyncio.create_task(ours.stop(task.id))
        await approval(task)
        await task.stop(force=True)
        with pytest.raises(NotAllowed, match="not allowed"):
            await asyncio.wait_for(stopping, 30)


async def test_promise_2_what_is_not_there_and_what_is_not_yours_look_the_same(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        ours = bb.session("same", owner="ada")
        stranger = await sleeper(bb.session("same", owner="bob"))
        other = await sleeper(bb.session("elsewhere", owner="ada"))
        finished = await (await bb.session("elsewhere", owner="ada").run("true")).wait(30)
        for reference in (stranger.id, "bg_0000000000000000", other.id[:15], finished.id):
            with pytest.raises(NotFound) as caught:
                await ours.stop(reference)
            assert str(caught.value).replace(reference, "ID") == (
                "no task 'ID' in session 'same' "
                "(backburner ls --all-sessions lists every task with its session)"
            )
        assert await stranger.questions() == []
        for task in (stranger, other):
            await task.stop(force=True)


async def test_c3_an_admin_does_not_ask(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await sleeper(bb.session("admins-theirs", owner="ada"))
        admin = bb.session("admins-own", owner="ada", role="admin")
        stopped = await admin.stop(task.id, force=True)
        assert stopped.state is State.CANCELED
        assert await task.questions() == []
        with pytest.raises(NotFound):
            await bb.session("admins-own", owner="bob", role="admin").stop(task.id)
