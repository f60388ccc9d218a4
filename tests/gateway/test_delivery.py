"""What a chat is told, once and in order, whatever the platform does: A8, B5, B6, B9, X1."""

import asyncio
import os
import re
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.gateway.delivery import LISTED_MAX
from backburner.gateway.desk import Desk
from backburner.gateway.journal import Journal
from backburner.gateway.letters import written
from backburner.gateway.platform import Message as Heard
from backburner.gateway.platform import Person, Place
from backburner.gateway.posting import Lines, Pace
from backburner.model.errors import Conflict
from backburner.model.signals import SignalState
from backburner.store.protocol import Scope
from tests.gateway.chat_server import ChatServer, Posted
from tests.gateway.conftest import Gateway
from tests.runtime.scripts import PROGRAM
from tests.waiting import wait_until_async

ADA = Scope("line:ada", "line:c1")


async def fail_at_once(desk: Desk, count: int, chat: str = "c1") -> None:
    """Tasks that cannot start, and so have ended already."""
    session = desk.backburner.session(f"line:{chat}", owner="line:ada")
    await asyncio.gather(*(session.run("true", cwd="/nowhere") for _ in range(count)))


async def states(backburner: Backburner, scope: Scope = ADA) -> list[SignalState]:
    return [each.state for each in await backburner.store.signals(scope, limit=2000)]


async def all_delivered(backburner: Backburner) -> None:
    async def done() -> bool:
        return set(await states(backburner)) == {SignalState.DELIVERED}

    await wait_until_async(done)


async def test_x1_an_end_is_told_once_and_acknowledged(chat: ChatServer, gateway: Gateway) -> None:
    async with gateway() as desk:
        await fail_at_once(desk, 1)
        post = await chat.shows("Background task failed")
        assert "/nowhere" in post.text
        await all_delivered(desk.backburner)
    assert len(chat.posts) == 1


async def test_b9_what_ended_while_there_was_no_gateway_is_told_by_the_next(
    chat: ChatServer, gateway: Gateway, home: Path
) -> None:
    async with gateway():
        chat.write("#!bg\nwhile [ ! -e go ]; do sleep 0.05; done; echo all done")
        started = await chat.shows("Started in the background")
        await wait_until_async(lambda: started.buttons)
    task = started.text.splitlines()[2]
    async with Backburner.open() as backburner:
        session = backburner.session("line:c1", owner="line:ada")
        Path(session.folder, "go").touch()
        await (await session.task(task)).wait(30)
        assert await states(backburner) == [SignalState.PENDING]  # B6: kept for later
    assert started.buttons  # nobody was there to take them away
    async with gateway() as desk:
        await chat.shows("Background task complete", "all done")
        await wait_until_async(lambda: "completed after" in started.text)
        assert started.buttons == {}
        await all_delivered(desk.backburner)
        assert desk.journal.cards == []
    assert chat.count("Background task complete") == 1


@pytest.mark.slow
async def test_nothing_is_posted_twice_after_a_crash_between_post_and_acknowledgement(
    chat: ChatServer, gateway: Gateway
) -> None:
    """The gateway is cut off right after the server has made the post."""
    cut = asyncio.Event()

    def cut_off(_: Posted) -> None:
        cut.set()
        chat.after_post = None
        chat.hang_up()

    async with gateway() as desk:
        chat.after_post = cut_off
        await fail_at_once(desk, 1)
        await asyncio.wait_for(cut.wait(), 30)
    async with gateway() as desk:
        await all_delivered(desk.backburner)
    assert chat.count("Background task failed") == 1


@pytest.mark.slow
async def test_a_letter_of_several_posts_goes_on_where_it_was_cut_off(
    chat: ChatServer, gateway: Gateway
) -> None:
    chat.remembers_keys = False  # so that the journal alone has to know
    text = "\n".join(f"line {number}: " + "word " * 12 for number in range(12))

    def told() -> list[Posted]:
        return [each for each in chat.posts if each.key.startswith("signal:")]

    def stop_after_two(_: Posted) -> None:
        if len(told()) == 2:
            chat.troubles["c1"] = {"refused": "not now"}

    chat.after_post = stop_after_two
    async with gateway(text=200):
        chat.write(f"/bg {text}")
        await wait_until_async(lambda: len(told()) == 2)
    chat.troubles.clear()
    async with gateway(text=200) as desk:
        await all_delivered(desk.backburner)
    shown = "\n".join(each.text for each in told())
    assert shown.count("Background task complete") == 1
    numbers = [int(each) for each in re.findall(r"^line (\d+):", shown, re.MULTILINE)]
    assert numbers == list(range(len(numbers))), "in order, none twice, none left out"


@pytest.mark.slow
async def test_a_signal_does_not_come_between_the_posts_of_a_long_reply(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway(text=150, pace=Pace(burst=1, every_s=0.3)) as desk:
        chat.write("/help")
        await wait_until_async(lambda: chat.posts)
        await fail_at_once(desk, 1)
        await chat.shows("Background task failed")
    of_reply = [each.key.startswith("reply:") for each in chat.posts]
    assert of_reply.count(True) > 3
    assert of_reply == sorted(of_reply, reverse=True), "first all of the one, then the other"


async def test_a_platform_that_asks_for_time_gets_it_and_other_chats_go_on(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway() as desk:
        chat.troubles["c1"] = {"later": 3600}
        await fail_at_once(desk, 1)
        await wait_until_async(lambda: any(each["do"] == "post" for each in chat.requests))
        chat.write("#!bg\ntrue", chat="c2")
        await chat.shows("Background task complete", chat="c2")
        asked = [each for each in chat.requests if each["do"] == "post" and each["chat"] == "c1"]
        assert len(asked) == 1, "not before the time is over"
        assert await states(desk.backburner) == [SignalState.PENDING]


async def test_a_reply_does_not_overtake_ends_that_were_to_be_posted_before_it(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway() as desk:
        chat.troubles["c1"] = {"later": 2}
        await fail_at_once(desk, 2)
        await wait_until_async(lambda: len(desk.journal.waiting(Place("c1"))) == 2)
        chat.troubles.clear()
        chat.write("/whoami")
        await chat.shows("Your id here")
        await all_delivered(desk.backburner)
    shown = ["failed" if "Background task failed" in each else "reply" for each in chat.texts()]
    assert shown == ["failed", "failed", "reply"], "and not again"


async def test_a_blocked_reply_holds_up_only_its_own_chat(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway():
        chat.troubles["c1"] = {"later": 3600}
        chat.write("/help")
        chat.write("/help", chat="c2")
        await chat.shows("/background", chat="c2")
        await wait_until_async(lambda: chat.heard_all)
    chat.troubles.clear()
    async with gateway():  # given up: an hour is more than anybody waits for a reply
        chat.write("/whoami")
        await chat.shows("You are on the list", "ada")


async def test_b6_a_platform_out_of_reach_raises_nothing_and_shows_in_the_signals(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway() as desk:
        chat.troubles["c1"] = {"refused": "the bot was thrown out"}
        await fail_at_once(desk, 1)

        async def failed() -> bool:
            [signal] = await desk.backburner.store.signals(ADA)
            return signal.reason is not None and "thrown out" in signal.reason

        await wait_until_async(failed)
        chat.troubles.clear()
        await all_delivered(desk.backburner)
    assert chat.count("Background task failed") == 1


async def test_what_is_refused_harms_nothing_that_comes_with_it(
    chat: ChatServer, gateway: Gateway
) -> None:
    chat.takes = lambda request: "bad" not in request["text"] and request["file"] is None
    async with gateway() as desk:
        session = desk.backburner.session("line:c1", owner="line:ada")
        for title in ("a bad one", "a good one", "another good one"):
            await session.run("true", title=title, cwd="/nowhere")
        await chat.shows('"a good one"')
        await chat.shows('"another good one"')

        async def settled() -> bool:
            found = await desk.backburner.store.signals(ADA)
            return [each.state for each in found][1:] == [SignalState.DELIVERED] * 2

        await wait_until_async(settled)
        [refused, *_] = await desk.backburner.store.signals(ADA)
        assert "never taken" in (refused.reason or "")
        Path(session.folder).mkdir(parents=True, exist_ok=True)
        Path(session.folder, "plot.png").write_bytes(b"x")
        chat.write("/bg ![plot](plot.png)")
        await chat.shows("plot.png could not be sent here")


@pytest.mark.slow
async def test_a_thousand_ends_do_not_flood_a_chat(chat: ChatServer, gateway: Gateway) -> None:
    async with gateway() as desk:
        await fail_at_once(desk, 1000)
        await all_delivered(desk.backburner)
        assert len(await states(desk.backburner)) == 1000
    assert len(chat.posts) <= 20
    listed = [post.text for post in chat.posts if "background tasks have news" in post.text]
    told = sum(int(text.split()[0]) for text in listed) + chat.count("Background task failed")
    assert told == 1000
    assert all(len(text.splitlines()) <= LISTED_MAX + 2 for text in listed)


@pytest.mark.slow
async def test_a_question_is_asked_with_its_answers_as_buttons(
    chat: ChatServer, gateway: Gateway
) -> None:
    script = f"""#!bg
a=$({PROGRAM} ask --schema '{{"enum": ["red", "green"]}}' 'Which one?'); echo "it is $a"
b=$({PROGRAM} ask 'And why?'); echo "because $b"
c=$({PROGRAM} ask 'Really?'); echo "really $c"
"""
    async with gateway():
        chat.write(script)
        question = await chat.shows("Which one?")
        assert list(question.buttons) == ["red", "green"]
        chat.press(question, "green", person="mallory")
        chat.press(question, "green")
        why = await chat.shows("And why?")
        task = re.search(r"bg_\w+", why.text)
        assert task is not None
        # A plain message alone answers nothing: it may be meant for the agent.
        chat.write("just talking")
        await chat.shows("just talking")
        chat.press(why, "Answer")
        await chat.shows("Write your answer")
        chat.write("it is warm")
        await chat.shows("Really?")
        chat.press(question, "red")
        await chat.shows("Nobody waits for that answer any more")
        chat.write(f"/answer {task[0]}")
        await chat.shows("What is the answer?")
        chat.write(f"/answer {task[0]} yes, indeed")
        done = await chat.shows("Background task complete")
    for text in ("it is green", "because it is warm", "really yes, indeed"):
        assert text in done.text


async def test_progress_is_shown_in_the_reply_and_its_buttons_work(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway():
        chat.write(f"#!bg\necho hi; {PROGRAM} progress 3 10 --unit files; sleep 600")
        started = await chat.shows("Started in the background")
        await wait_until_async(lambda: "30% (3/10 files)" in started.text)
        assert list(started.buttons) == ["Stop", "Show output"]
        chat.press(started, "Show output")
        await chat.shows("```\nhi\n```")
        chat.press(started, "Stop")
        await wait_until_async(lambda: "stopped after" in started.text)
        assert started.buttons == {}


async def test_two_gateways_by_mistake_the_second_is_refused(
    chat: ChatServer, gateway: Gateway, home: Path
) -> None:
    async with gateway():
        chat.write("#!bg\nsleep 600")
        await chat.shows("Started in the background")
        with pytest.raises(Conflict, match=f"running already \\(process {os.getpid()}\\)"):
            async with gateway():
                pass
    # The job does not hold the lock of the gateway that started it.
    async with gateway():
        chat.write("stop the job")
        await chat.shows("⏹ bg_")


async def test_posts_keep_their_pace(chat: ChatServer, home: Path, tmp_path: Path) -> None:
    from tests.gateway.line_platform import LinePlatform

    journal = Journal(str(tmp_path / "journal"))
    lines = Lines(LinePlatform(chat.path), journal, Pace(burst=2, every_s=0.1))
    begin = asyncio.get_running_loop().time()
    for number in range(6):
        place = Place("c1")
        letter = written(f"l{number}", place, "text", LinePlatform(chat.path).limits)
        await lines.to(place).reply(letter)
    assert asyncio.get_running_loop().time() - begin >= 0.4 - 0.02
    assert len(chat.posts) == 6
    journal.close()


async def test_what_cannot_be_repeated_is_not_after_a_crash_in_the_middle_of_it(
    chat: ChatServer, gateway: Gateway, home: Path
) -> None:
    """An answer to a question may have been given; a list of tasks may be given again."""
    folder = home / "gateway" / "line"
    folder.mkdir(parents=True)
    journal = Journal(str(folder / "journal"))
    answering = Heard("k1", Place("c1"), Person("ada", "Ada"), "/answer bg_x yes")
    listing = Heard("k2", Place("c1"), Person("ada", "Ada"), "/tasks")
    gone = Heard("k3", Place("c1"), Person("carol", "Carol"), "/tasks")
    for each in (answering, listing, gone):
        journal.hear(each)
    journal.begin(answering)
    journal.close()
    async with gateway() as desk:
        await chat.shows("I was restarted in the middle of this")
        await chat.shows("There are no background tasks")
        await wait_until_async(lambda: not desk.journal.unfinished())
    assert len(chat.posts) == 2


async def test_a_stop_in_words_taken_up_again_does_not_end_another_task(
    chat: ChatServer, gateway: Gateway, home: Path
) -> None:
    async with gateway():
        chat.write("#!bg\nsleep 600")
        first = (await chat.shows("Task ID:")).text.splitlines()[2]
        chat.troubles["c1"] = {"later": 60}
        chat.write("kill that job")

        async def killed() -> bool:
            async with Backburner.open() as backburner:
                session = backburner.session("line:c1", owner="line:ada")
                return (await session.task(first)).state.terminal

        await wait_until_async(killed)
    chat.troubles.clear()
    async with Backburner.open() as backburner:
        other = await backburner.session("line:c1", owner="line:ada").run("sleep 600")
        async with gateway() as desk:
            await wait_until_async(lambda: not desk.journal.unfinished())
        assert not (await other.refresh()).state.terminal
        await other.stop(force=True)


async def test_a_new_gateway_does_not_wait_for_the_lease_of_a_dead_one(
    chat: ChatServer, gateway: Gateway, home: Path
) -> None:
    async with Backburner.open() as backburner:
        session = backburner.session("line:c1", owner="line:ada")
        await session.run("true", cwd="/nowhere")
        held = await backburner.store.claim_signals(
            Scope("line:ada"), consumer="gateway line line:ada", limit=9, lease_s=3600
        )
        assert len(held) == 1
    async with gateway() as desk:
        await all_delivered(desk.backburner)
    assert chat.count("Background task failed") == 1
