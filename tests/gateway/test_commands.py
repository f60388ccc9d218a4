"""The commands of a chat: B1, B2, B8, B9, A1, A10, who may speak."""

from pathlib import Path

import pytest

from backburner.gateway.commands import COMMANDS
from backburner.gateway.hearing import MESSAGE_MAX_BYTES, TALK_MAX
from backburner.gateway.people import Guests
from backburner.gateway.platform import Person, Place
from backburner.gateway.registry import parse
from backburner.model.ids import PREFIX
from backburner.store.protocol import Scope
from tests.gateway.chat_server import ChatServer
from tests.gateway.conftest import Gateway
from tests.waiting import wait_until_async

LONG = "Summarise " + "the very long release notes " * 5


def id_in(text: str) -> str:
    """The id on the line after `Task ID:`."""
    lines = text.splitlines()
    return lines[lines.index("Task ID:") + 1]


async def test_b2_the_reply_comes_at_once_with_a_preview_and_the_id_on_its_own_line(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway():
        chat.write(f"/background {LONG}")
        post = await chat.shows("Started in the background")
        first, *rest = post.text.splitlines()
        quoted = first.split('"')[1]
        assert len(quoted) <= 60
        assert quoted.endswith("…")
        assert LONG.startswith(quoted[:-1])
        assert rest[0] == "Task ID:"
        assert rest[1].startswith(PREFIX)
        await chat.shows("Background task complete", LONG.strip())


async def test_b5_success_is_one_message_in_the_same_chat_and_thread(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway():
        chat.write("/bg 6 times 7 is 42", thread="t9")
        done = await chat.shows("Background task complete", "6 times 7 is 42", thread="t9")
        assert done.chat == "c1"
        await wait_until_async(lambda: chat.heard_all)
    assert chat.count("Background task complete") == 1


@pytest.mark.slow
async def test_b6_failure_is_one_message_that_says_why(chat: ChatServer, gateway: Gateway) -> None:
    async with gateway(agent=None):  # no model is configured
        chat.write("/bg anything")
        post = await chat.shows("Background task failed")
        assert "no model is configured" in post.text
        assert "Traceback" not in post.text
    assert chat.count("Background task failed") == 1


@pytest.mark.parametrize("text", ["/background", "/bg", "/bg    ", "/BG"])
async def test_b1_without_a_prompt_it_explains_itself(
    chat: ChatServer, gateway: Gateway, text: str
) -> None:
    async with gateway() as desk:
        chat.write(text)
        await chat.shows("Usage: /background or /bg PROMPT")
        assert await desk.backburner.store.newest(_everything("ada"), limit=5) == []


@pytest.mark.parametrize(
    "text", ["/bg status", "/bg list", "/background LS", "/bg tasks", "/bg ps", "/bg jobs"]
)
async def test_b9_bg_status_shows_and_does_not_start_a_task_called_status(
    chat: ChatServer, gateway: Gateway, text: str
) -> None:
    async with gateway() as desk:
        chat.write(text)
        await chat.shows("There are no background tasks")
        assert await desk.backburner.store.newest(_everything("ada"), limit=5) == []


async def test_b9_tasks_output_wait_and_stop_manage_it(chat: ChatServer, gateway: Gateway) -> None:
    async with gateway():
        chat.write("#!bg\necho begun; sleep 600")
        started = await chat.shows("Started in the background")
        task = id_in(started.text)
        chat.write("/tasks")
        await chat.shows(f"⏳ {task}")

        async def asked_for_output() -> bool:
            chat.write(f"/output {task}")
            await wait_until_async(lambda: chat.heard_all)
            return chat.count(task, "begun", "```") > 0

        await wait_until_async(asked_for_output)
        chat.write(f"/wait {task}")
        chat.write(f"/bg stop {task}")
        await chat.shows(task, "stopped")
        chat.write(f"/stop {task}")
        await chat.shows("It is not running", task)
        await wait_until_async(lambda: "stopped after" in started.text)
        assert started.buttons == {}
    # A4: whoever stops a task is not told of its end.
    assert chat.count("Background task stopped") == 0


async def test_b8_help_lists_it_and_the_menu_has_it(chat: ChatServer, gateway: Gateway) -> None:
    async with gateway():
        chat.write("/help")
        post = await chat.shows("/background, /bg PROMPT")
        assert post.text.startswith("Session\n")
        chat.write("/help bg")
        await chat.shows("Usage: /background or /bg PROMPT")
    assert {"background", "bg", "tasks", "output", "stop", "answer", "schedule", "help"} <= {
        name for name, _, _ in chat.menu
    }


def test_b8_it_is_a_known_command_of_the_category_session_completed_after_a_slash() -> None:
    command = COMMANDS.find("bg")
    assert command is COMMANDS.find("background")
    assert command is not None
    assert (command.category, command.aliases) == ("Session", ("bg",))
    assert "/background" in [name for name, _ in COMMANDS.completions("/ba")]
    assert COMMANDS.completions("ba") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/bg do it", ("bg", "do it")),
        ("  /bg\ndo it\nwell", ("bg", "do it\nwell")),
        ("/etc/passwd is a file", None),
        ("/", None),
        ("/ bg", None),
        ("no /bg", None),
        ("/bg\tdo it", ("bg", "do it")),
    ],
)
def test_what_is_a_command(text: str, expected: tuple[str, str] | None) -> None:
    assert parse(text) == expected


async def test_an_unknown_command_or_id_is_answered_in_a_sentence(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway():
        chat.write("/fly")
        await chat.shows("I do not know that command")
        chat.write("/output bg_nothing")
        post = await chat.shows("bg_nothing", "not found", "/tasks lists")
        assert "line:c1" not in post.text
        for text in ("/bg output", "/output", "/bg logs"):
            chat.write(text)
        await wait_until_async(lambda: chat.count("Usage: /output ID") == 3)
        chat.write("/help fly")
        await wait_until_async(lambda: chat.count("I do not know that command") == 2)


# A1, A9, A10


@pytest.mark.parametrize("text", ["#!bg\necho $((6 * 7))", "```sh\n# bg\necho $((6 * 7))\n```"])
async def test_a1_a_marked_shell_block_starts_a_job(
    chat: ChatServer, gateway: Gateway, text: str
) -> None:
    async with gateway():
        chat.write(text)
        await chat.shows("Background task complete", "42")
    assert chat.count("Started in the background") == 1


async def test_a9_a_shell_block_is_refused_where_jobs_are_not_allowed(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway(jobs=False) as desk:
        chat.write("#!bg\ntouch /tmp/never")
        await chat.shows("not allowed in this chat")
        assert await desk.backburner.store.newest(_everything("ada"), limit=5) == []


async def test_a10_short_messages_about_tasks_need_no_model(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway(agent=None):
        chat.write("list my jobs")
        await chat.shows("There are no background tasks")
        chat.write("#!bg\nsleep 600")
        task = id_in((await chat.shows("Task ID:")).text)
        chat.write("is the job done?")
        await chat.shows(f'⏳ {task} "sleep 600"')
        chat.write("check the job output")
        await chat.shows(task, "Nothing printed yet")
        chat.write("Now kill that background job.")
        await chat.shows(f"⏹ {task}")
        chat.write("find me a job listing")  # for the agent
        await chat.shows("I can only talk where a model is configured")


async def test_without_a_model_the_long_hint_comes_once(chat: ChatServer, gateway: Gateway) -> None:
    async with gateway(agent=None):
        chat.write("hello")
        await chat.shows("I can only talk where a model is configured")
        chat.write("hello?")
        await chat.shows("No model is configured; /help")
    assert chat.count("I can only talk") == 1


# Who may speak


async def test_a_stranger_gets_no_answer_about_tasks(chat: ChatServer, gateway: Gateway) -> None:
    async with gateway():
        chat.write("#!bg\nsleep 600")
        started = await chat.shows("Started in the background")
        task = id_in(started.text)
        for text in ("/tasks", f"/output {task}", f"/stop {task}", "list my jobs", "/help", "hi"):
            chat.write(text, person="mallory")
        chat.press(started, "Stop", person="mallory")
        chat.write("/whoami", person="mallory")
        chat.write("/whoami", person="mallory")
        hint = await chat.shows("You are not on the list", "mallory")
        assert task not in hint.text
        chat.write("/tasks")  # of ada: everything before it was dealt with
        await chat.shows(f"⏳ {task}")
        assert chat.count("You are not on the list") == 1
        assert len(chat.posts) == 3
        chat.write(f"/stop {task}")
        await chat.shows(task, "stopped")


async def test_somebody_else_of_the_same_group_sees_nothing_of_ones_tasks(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway():
        chat.write("#!bg\nsleep 600")
        started = await chat.shows("Started in the background")
        task = id_in(started.text)
        chat.write("/tasks", person="bob")
        await chat.shows("There are no background tasks")
        chat.press(started, "Stop", person="bob")
        await chat.shows(f"'{task}'")  # is not found, as any other
        chat.write(f"/stop {task}")
        await chat.shows(task, "stopped")


async def test_a_message_that_is_told_twice_is_dealt_with_once_also_after_a_restart(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway():
        key = chat.write("/bg once")
        await chat.shows("Background task complete")
        chat.repeat(key, "/bg once")
        await wait_until_async(lambda: chat.heard_all)
    async with gateway():
        chat.repeat(key, "/bg once")
        await wait_until_async(lambda: chat.heard_all)
        chat.write("/help")
        await chat.shows("/background, /bg")
    assert chat.count("Started in the background") == 1


async def test_a_slow_command_does_not_keep_others_from_being_heard(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway():
        chat.write("#!bg\nsleep 600")
        task = id_in((await chat.shows("Task ID:")).text)
        chat.write(f"/wait {task}")
        chat.write("/tasks")
        await chat.shows(f"⏳ {task}")
        chat.write(f"/stop {task}")
        await chat.shows(task, "stopped")


async def test_a_schedule_is_planned_listed_and_ended(chat: ChatServer, gateway: Gateway) -> None:
    async with gateway():
        chat.write("/schedule 0 9 * * 1-5 read the news")
        planned = await chat.shows("Planned: sc_", "read the news")
        schedule = planned.text.split()[1]
        chat.write("/schedule")
        await wait_until_async(lambda: chat.count(schedule) == 2)
        chat.write(f"/schedule stop {schedule}")
        await chat.shows("Ended:", schedule)
        chat.write("/schedule tomorrow")
        await chat.shows("needs a time and a prompt")


async def test_a_schedule_means_the_clocks_of_the_zone_that_was_chosen(
    chat: ChatServer, gateway: Gateway
) -> None:
    async with gateway(zone="Asia/Kolkata"):
        chat.write("/schedule 30 9 * * * read the news")
        await chat.shows("Planned: sc_", " 09:30 Asia/Kolkata")
        chat.write("/schedule at 2099-12-24T18:00 sing")
        await chat.shows("Planned: sc_", "next at 2099-12-24 18:00 Asia/Kolkata")
        chat.write("/schedule at 2099-12-25T18:00Z sing")
        await chat.shows("Planned: sc_", "next at 2099-12-25 23:30 Asia/Kolkata")
        chat.write("/schedule at 18:00 sing")
        await chat.shows("'18:00' is no time")


def _everything(person: str) -> Scope:
    return Scope(f"line:{person}")


def test_names_are_unambiguous_and_lead_back_to_the_place() -> None:
    guests = Guests("line", ["ada", "a/b:c"])
    places = [Place("1"), Place("1", ""), Place("1/2"), Place("1", "2"), Place("%31"), Place("ä#t")]
    scopes = [guests.scope_of(place, Person("ada", "Ada")) for place in places]
    assert len({scope.session for scope in scopes if scope is not None}) == len(places)
    for place, scope in zip(places, scopes, strict=True):
        assert scope is not None
        assert guests.place_of(scope.session or "") == place
    assert guests.scope_of(Place("x" * 500), Person("ada", "Ada")) is None
    assert guests.scope_of(Place("1"), Person("ada\n", "Ada")) is None
    assert guests.place_of("other:1") is None
    assert guests.place_of("line:1#talk") == Place("1"), "the turns of its agent may ask"


@pytest.mark.slow
async def test_too_much_at_once_is_left_out_with_a_word(chat: ChatServer, gateway: Gateway) -> None:
    async with gateway(agent="sh -c 'sleep 600'") as desk:
        for number in range(TALK_MAX + 10):
            chat.write(f"think of number {number}")
        await chat.shows("That is too much at once")
        await wait_until_async(lambda: chat.heard_all)
        await wait_until_async(lambda: len(desk.journal.unfinished()) <= TALK_MAX)
        chat.write("/tasks")  # commands always pass
        await chat.shows("There are no background tasks")
        chat.write("/help", chat="c2")  # others are not concerned
        await chat.shows("/background", chat="c2")


async def test_a_message_longer_than_a_prompt_may_be_is_left_out_with_a_word_and_not_noted(
    chat: ChatServer, gateway: Gateway, home: Path
) -> None:
    long = "é" * (MESSAGE_MAX_BYTES // 2 + 1)
    async with gateway():
        key = chat.write(long)
        await chat.shows("longer than 512 KiB", "send it as a file")
        await wait_until_async(lambda: chat.heard_all)
        chat.repeat(key, long)
        chat.write("/whoami")
        await chat.shows("Your id here")
    assert chat.count("longer than") == 1
    assert (home / "gateway/line/journal").stat().st_size < 10_000
