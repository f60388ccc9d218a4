"""X5: a script asks and waits; whoever may answers; nothing that dies meanwhile loses either."""

import asyncio
import os
import secrets
import signal
from pathlib import Path

import pytest

from backburner import (
    Backburner,
    EventKind,
    InputRefused,
    NobodyAsked,
    NotFound,
    SignalKind,
    SignalState,
    State,
    Task,
    UsageError,
)
from backburner.model.limits import OPEN_QUESTIONS_MAX
from tests.faults.victims import (
    keeper_of,
    kill,
    kill_all_of_ours,
    kill_keeper,
    processes_with,
    suspend,
    unique_seconds,
)
from tests.runtime.scripts import PROGRAM, open_questions
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


async def asker(bb: Backburner, line: str = f"{PROGRAM} ask 'Deploy?'") -> Task:
    task = await bb.session("s").run(line)
    await open_questions(task)
    return task


async def kinds(task: Task) -> list[EventKind]:
    return [event.kind async for event in task.events(follow=False)]


async def test_x5_a_script_asks_and_goes_on_with_the_answer(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await asker(bb, f'a=$({PROGRAM} ask "Deploy?") && echo "it said $a"')
        assert (await task.refresh()).state is State.INPUT_REQUIRED
        (question,) = await task.questions()
        assert (question.text, question.open) == ("Deploy?", True)
        document = task.document()["question"]
        assert (document["id"], document["text"]) == (question.id, "Deploy?")
        assert await task.send("yes, do") == question.id
        await task.wait(30)
        assert (task.exit_code, (await task.output()).text) == (0, "it said yes, do\n")
        assert await kinds(task) == [
            EventKind.CREATED, EventKind.STARTED, EventKind.ASKED, EventKind.ANSWERED,
            EventKind.FINISHED,
        ]  # fmt: skip
        assert task.document()["question"] is None


async def test_x1_the_session_is_told_once_of_a_question(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await asker(bb)
        async for told in bb.session("s").signals(follow=False):
            assert told.record.kind is SignalKind.INPUT_REQUIRED
            assert told.text.endswith(f"({task.id}) asks: Deploy?")
            await told.ack()
        await task.send("yes")
        await task.wait(30)
        signals = [each.record for each in await bb.session("s").told()]
        assert [(each.kind, each.state) for each in signals] == [
            (SignalKind.INPUT_REQUIRED, SignalState.DELIVERED),
            (SignalKind.COMPLETED, SignalState.PENDING),
        ]


@pytest.mark.parametrize(
    "answer", ["", "two\nlines\n", "a\r\nb", "é𝄞", " $(rm -rf x) '\"\\", "x" * 2**20]
)
async def test_x5_an_answer_arrives_as_it_was_given(shared_home: Path, answer: str) -> None:
    async with Backburner.open(shared_home) as bb:
        line = f"{PROGRAM} ask '?' >answer"
        task = await bb.session("s").run(line, cwd=shared_home)
        await open_questions(task)
        await task.send(answer)
        assert (await task.wait(30)).exit_code == 0
        got = (shared_home / "answer").read_bytes().decode()
        assert got == (answer if answer.endswith("\n") else f"{answer}\n")


async def test_x5_an_answer_that_is_too_long_changes_nothing(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await asker(bb)
        for text, problem in (("x" * (2**20 + 1), "1024 KiB"), ("\ud800", "UTF-8")):
            with pytest.raises(UsageError, match=problem):
                await task.send(text)
        (question,) = await task.questions()
        assert question.open
        await task.stop(force=True)


async def test_x5_several_processes_ask_at_once(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(
            f'for i in 1 2 3; do (a=$({PROGRAM} ask "q$i"); echo "$i=$a" >>answers.txt) & done;'
            " wait; sort answers.txt",
            cwd=shared_home,
        )
        questions = {each.text: each.id for each in await open_questions(task, 3)}
        assert await task.send("two", question=questions["q2"]) == questions["q2"]
        with pytest.raises(NobodyAsked, match="no open question"):
            await task.send("again", question=questions["q2"])
        assert (await task.refresh()).state is State.INPUT_REQUIRED
        oldest = next(each for each in await task.questions() if each.open)
        assert await task.send(f"for {oldest.text}") == oldest.id
        (last,) = await open_questions(task)
        await task.send(f"for {last.text}")
        await task.wait(30)
        assert (await task.output()).text == "1=for q1\n2=two\n3=for q3\n"


async def test_x5_in_plain_sh_without_our_program(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await asker(
            bb,
            """echo '{"ask": {"id": "colour", "question": "Which colour?"}}' >>"$BACKBURNER_REPORT"
            answer="${BACKBURNER_REPORT%/*}/answers/colour"
            until [ -e "$answer" ]; do sleep 0.05; done; cat "$answer" """,
        )
        assert await task.send("blue") == "colour"
        await task.wait(30)
        assert (await task.output()).text == "blue"


# Nobody asked


async def test_x5_what_nobody_asked_is_refused_and_nothing_changes(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(f"sleep {unique_seconds()}")
        await wait_until_async(lambda: _is_running(task))
        before = await kinds(task)
        with pytest.raises(NobodyAsked, match="asked nothing") as refused:
            await task.send("yes")
        assert "--stdin" in refused.value.remedy
        with pytest.raises(NobodyAsked, match="no open question 'x'"):
            await task.send("yes", question="x")
        with pytest.raises(NobodyAsked):
            await task.send_eof()
        assert await kinds(task) == before
        await task.stop(force=True)
        with pytest.raises(InputRefused, match="has ended"):
            await task.send("yes")


async def _is_running(task: Task) -> bool:
    return (await task.refresh()).state is State.RUNNING


async def test_promise_2_another_session_cannot_answer(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await asker(bb)
        with pytest.raises(NotFound):
            await bb.session("other").task(task.id)
        assert await bb.store.answer(task.id, bb.session("other").scope, "no") is None
        await task.stop(force=True)


# Giving up


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_x5_whoever_gives_up_withdraws_the_question(
    shared_home: Path, number: signal.Signals
) -> None:
    async with Backburner.open(shared_home) as bb:
        question_text = secrets.token_hex(8)
        task = await asker(bb, f"{PROGRAM} ask {question_text}; echo code $?")
        (pid,) = processes_with(question_text)
        os.kill(pid, number)
        await task.wait(30)
        assert (await task.output()).text.endswith(f"code {128 + number}\n")
        (question,) = await task.questions()
        # Read with the end, when nobody can be told any more, or before it.
        assert question.answer is None
        with pytest.raises(InputRefused):
            await task.send("late")


async def test_x5_a_question_times_out(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        line = f"{PROGRAM} ask --timeout 0.3s 'Anyone?'; echo code $?; sleep {unique_seconds()}"
        task = await bb.session("s").run(line)

        async def withdrawn() -> bool:
            return any(each.withdrawn for each in await task.questions())

        await wait_until_async(withdrawn)
        assert (await task.refresh()).state is State.RUNNING

        async def code() -> bool:
            return "code 124" in (await task.output()).text

        await wait_until_async(code)
        assert "nobody answered within 0.3s" in (await task.output()).text
        with pytest.raises(NobodyAsked):
            await task.send("late")
        await task.stop(force=True)


async def test_x5_stop_ends_a_task_that_waits_for_an_answer(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        question_text = secrets.token_hex(8)
        task = await asker(bb, f"{PROGRAM} ask {question_text}")
        await task.stop()
        assert task.state is State.CANCELED
        assert processes_with(question_text) == []


async def test_x5_what_a_task_left_running_is_told_that_nobody_will_answer(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        line = f"({PROGRAM} ask orphan >orphan 2>&1; echo code $? >>orphan) & sleep 0.5"
        task = await bb.session("s").run(line, cwd=shared_home)
        await task.wait(30)
        path = shared_home / "orphan"
        wait_until(lambda: path.exists() and "code 1" in path.read_text())
        assert "the task has ended" in path.read_text()


@pytest.mark.slow
async def test_x3_a_task_that_asks_without_end_is_refused_and_told_so(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(
            f"i=0; while [ $i -lt {OPEN_QUESTIONS_MAX} ]; do i=$((i + 1));"
            ' echo "{\\"ask\\": {\\"id\\": \\"q$i\\", \\"question\\": \\"q$i?\\"}}"'
            f" >>$BACKBURNER_REPORT; done; sleep 0.5; {PROGRAM} ask 'One more?'; echo code $?"
        )
        await task.wait(60)
        output = (await task.output()).text
        assert f"{OPEN_QUESTIONS_MAX} questions are open, and that is the limit" in output
        assert output.endswith("code 5\n")


# Dying in the middle


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before the answer", "after the answer", "all at once"])
async def test_x5_questions_and_answers_survive_a_kill_of_everything(home: Path, when: str) -> None:
    line = f"for i in 1 2 3; do (a=$({PROGRAM} ask q$i); echo $a) & done; wait"
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(line)
        await open_questions(task, 3)
        if when == "before the answer":
            kill_all_of_ours(home)
            for number in range(3):
                await task.send(str(number))
        elif when == "after the answer":
            keeper = keeper_of(home)
            assert keeper is not None
            suspend(home, keeper)  # it cannot hand anything on
            for number in range(3):
                await task.send(str(number))
            kill_all_of_ours(home)
        else:
            kills = asyncio.to_thread(lambda: [kill_keeper(home) for _ in range(3)])
            sends = (task.send(str(number)) for number in range(3))
            await asyncio.gather(kills, *sends)
        await task.wait(60)
        assert sorted((await task.output()).text.split()) == ["0", "1", "2"]
        found = await kinds(task)
        assert found.count(EventKind.ASKED) == found.count(EventKind.ANSWERED) == 3


@pytest.mark.slow
async def test_x5_a_question_asked_while_nobody_keeps_the_home_is_answered_later(
    home: Path,
) -> None:
    async with Backburner.open(home) as bb:
        alone = secrets.token_hex(8)
        task = await bb.session("s").run(
            f"until [ -e go ]; do sleep 0.01; done; {PROGRAM} ask {alone}", cwd=home
        )
        await wait_until_async(lambda: _is_running(task))
        kill_all_of_ours(home)
        (home / "go").touch()
        wait_until(lambda: processes_with(alone))
        await open_questions(task)
        await task.send("not alone")
        await task.wait(30)
        assert (await task.output()).text == "not alone\n"


@pytest.mark.slow
async def test_x5_an_asker_that_is_killed_leaves_a_question_that_its_end_closes(
    home: Path,
) -> None:
    async with Backburner.open(home) as bb:
        victim = secrets.token_hex(8)
        task = await asker(bb, f"{PROGRAM} ask {victim}; echo code $?")
        kill(*processes_with(victim))
        await task.wait(30)
        assert "code 137" in (await task.output()).text
        signals = [each.record for each in await bb.session("s").told()]
        assert [each.reason for each in signals] == ["the task has ended", None]


async def test_x5_a_pipe_in_the_place_of_the_answer_holds_nobody_up(shared_home: Path) -> None:
    """A job can put anything into its folder; the keeper has others to look after."""
    line = f"mkfifo $(dirname $BACKBURNER_REPORT)/answer.new; {PROGRAM} ask 'Deploy?'"
    async with Backburner.open(shared_home) as bb:
        task = await asker(bb, line)
        await task.send("yes")
        assert (await (await bb.session("s").run("exit 3")).wait(30)).exit_code == 3
        await task.wait(30)
        assert (await task.output()).text == "yes\n"


async def test_x5_a_question_may_wait_for_longer_than_poll_can_count(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await asker(bb, f"{PROGRAM} ask --timeout 60d 'Deploy?'")
        await task.send("yes")
        await task.wait(30)
        assert (task.exit_code, (await task.output()).text) == (0, "yes\n")
