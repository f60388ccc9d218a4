"""A10: which task a message means; a stop goes to one beyond doubt, or back as a question."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.intents import One, Several, Target, Unclear, resolve
from backburner.model.clock import SECOND
from backburner.model.states import Kind, State
from backburner.model.task import Task
from backburner.tools.intents.target import MOST_LISTED
from tests.tools.intents.table import PHRASES


def task(
    seq: int, id: str, title: str, state: State = State.RUNNING, command: str | None = None
) -> Task:
    spec: dict[str, Any] = {"command": title if command is None else command}
    return Task(seq, id, "ada", "chat", Kind.SHELL, title, spec, state, 1, seq * SECOND)


TESTS = task(1, "bg_7qk2aaaaaaaaaaaa", "pytest -q")
BUILD = task(2, "bg_7qm3bbbbbbbbbbbb", "npm run build")
SERVER = task(3, "bg_zz91cccccccccccc", "dev server", command="python -m http.server 8000")
DONE = task(4, "bg_d0n3dddddddddddd", "make docs", State.SUCCEEDED)
FAILED = task(5, "bg_f411eeeeeeeeeeee", "deploy to staging", State.FAILED)
QUEUED = task(6, "nightly-build", "reports", State.QUEUED)


def meant(target: Target) -> str | None:
    return target.task.id if isinstance(target, One) else None


def question(target: Target) -> str:
    assert isinstance(target, Unclear)
    return target.question


@pytest.mark.parametrize(
    "text",
    [
        "stop the job",
        "is the job done?",
        "check the job output",
        "kill that background job",
        "tail the job",
    ],
)
def test_a10_that_job_is_the_only_one_that_runs(text: str) -> None:
    for tasks in permutations([DONE, TESTS, FAILED]):
        assert resolve(text, tasks) == One(TESTS)


@pytest.mark.parametrize("text", ["is the job done?", "show me the output of the job"])
def test_a10_to_read_the_newest_that_runs_is_taken_else_the_newest(text: str) -> None:
    assert resolve(text, [TESTS, BUILD, DONE]) == One(BUILD)
    assert resolve(text, [DONE, FAILED]) == One(FAILED)


def test_a10_to_stop_one_of_several_is_a_question_back() -> None:
    answer = resolve("stop the job", [TESTS, DONE, BUILD])
    assert answer == Unclear(
        "Which task do you mean? Say its id, or a word of its title.\n"
        "- bg_7qm3bbbbbbbbbbbb npm run build (running)\n"
        "- bg_7qk2aaaaaaaaaaaa pytest -q (running)",
        (BUILD, TESTS),
    )


def test_a10_one_that_waits_for_its_start_or_an_answer_counts_too() -> None:
    asking = task(9, "bg_a5k", "installer", State.INPUT_REQUIRED)
    assert resolve("stop the job", [QUEUED, DONE]) == One(QUEUED)
    assert isinstance(resolve("stop the job", [QUEUED, asking]), Unclear)
    assert resolve("stop the running job", [QUEUED, asking]) == One(asking)
    assert resolve("stop the queued job", [QUEUED, asking]) == One(QUEUED)


def test_a10_with_nothing_to_stop_it_says_so() -> None:
    assert resolve("stop the job", []) == Unclear("There is no background task in this session.")
    assert resolve("stop the job", [DONE, FAILED]) == Unclear("No background task is running.")
    assert resolve("stop all jobs", [DONE]) == Unclear("No background task is running.")
    assert (
        question(resolve("is the job done?", [])) == "There is no background task in this session."
    )


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("stop bg_7qk2", TESTS.id),
        ("stop BG_7QK2AAAAAAAAAAAA", TESTS.id),
        ("kill task bg_zz", SERVER.id),
        ("is bg_d0n3 done?", DONE.id),
        ("stop bg_d0n3", DONE.id),  # its real record is the answer (A4)
        ("stop job 7qk2", TESTS.id),
        ("stop job nightly-build", QUEUED.id),
        ("stop the job called nightly-build", QUEUED.id),
        ("output of job nightly-bu", QUEUED.id),
    ],
)
def test_a10_an_id_or_its_beginning_is_beyond_doubt(text: str, id: str) -> None:
    assert meant(resolve(text, [TESTS, BUILD, SERVER, DONE, FAILED, QUEUED])) == id


def test_a10_an_id_wins_over_longer_ones_that_begin_with_it() -> None:
    short, long = task(1, "bg_7", "one"), task(2, "bg_77", "two")
    assert resolve("stop bg_7", [short, long]) == One(short)


def test_a10_an_id_that_fits_several_or_none_is_a_question_back() -> None:
    several = resolve("stop bg_7q", [TESTS, BUILD, SERVER])
    assert question(several).startswith("2 tasks have an id that begins with bg_7q.\n- bg_7qm3")
    none = resolve("stop bg_000", [TESTS])
    assert question(none).startswith("No task here has an id that begins with bg_000.\n- bg_7qk2")


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("stop the pytest job", TESTS.id),
        ("is the pytest job done?", TESTS.id),
        ("kill the dev server job", SERVER.id),
        ("stop the job called pytest", TESTS.id),
        ('kill the job "npm run build"', BUILD.id),
        ("kill the job running pytest", TESTS.id),
        ("stop the build", BUILD.id),
        ("is the build done?", BUILD.id),
        ("show me the logs of the build", BUILD.id),
        ("stop the http.server job", SERVER.id),  # a word of its command
        ("show me the output of the docs job", DONE.id),
        ("show me the output of the doc job", DONE.id),
        ("is the test job done?", TESTS.id),  # part of a word is enough to read
    ],
)
def test_a10_a_word_of_the_title_names_the_task(text: str, id: str) -> None:
    assert meant(resolve(text, [TESTS, BUILD, SERVER, DONE, FAILED])) == id


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("stop the cargo job", "cargo"),
        ("stop the test job", "test"),  # not for sure pytest
        ("stop the download", "download"),
        ("kill job 3", "3"),
        ("kill job 8000", "8000"),  # a port in a command is no number of a job
        ('kill the job "rm -rf"', "rm -rf"),
    ],
)
def test_a10_a_name_that_no_task_bears_is_never_taken_for_the_only_one(
    text: str, named: str
) -> None:
    for only in (TESTS, SERVER):
        answer = question(resolve(text, [only]))
        assert answer.startswith(f"No task here is called {named}.\n- {only.id}")


def test_a10_a_number_is_a_word_of_the_title_or_a_whole_id() -> None:
    third, chosen = task(1, "bg_x", "part 3 of 9"), task(2, "4", "reports")
    assert resolve("kill job 3", [third, TESTS]) == One(third)
    assert resolve("kill job #4", [chosen, TESTS]) == One(chosen)


def test_a10_of_several_with_that_name_the_only_one_that_runs_is_stopped() -> None:
    before, again = task(1, "bg_1", "pytest", State.FAILED), task(2, "bg_2", "pytest")
    assert resolve("stop the pytest job", [before, again, BUILD]) == One(again)
    further = task(3, "bg_3", "pytest -x")
    assert isinstance(resolve("stop the pytest job", [before, again, further]), Unclear)
    assert resolve("is the pytest job done?", [before, again, further]) == One(further)


def test_a10_last_and_oldest_say_which() -> None:
    assert resolve("stop the last job", [TESTS, BUILD, SERVER]) == One(SERVER)
    assert resolve("kill the oldest job", [TESTS, BUILD, DONE]) == One(TESTS)
    assert resolve("show me the output of the last job", [TESTS, BUILD, DONE]) == One(DONE)
    assert resolve("show me the output of the oldest job", [TESTS, BUILD, DONE]) == One(TESTS)
    assert isinstance(resolve("stop the last job", [TESTS, BUILD, DONE]), Unclear)  # it has ended


def test_a10_how_it_ended_says_which() -> None:
    assert resolve("show me the output of the failed job", [TESTS, FAILED]) == One(FAILED)
    assert question(resolve("show me the output of the failed job", [TESTS])).startswith(
        "There is no failed task here."
    )


def test_a10_all_of_several_are_never_stopped_without_a_question() -> None:
    assert resolve("stop all jobs", [TESTS, DONE]) == One(TESTS)
    answer = resolve("kill all background jobs", [TESTS, BUILD, DONE])
    assert question(answer).startswith("Should I stop all 2 of these?\n- bg_7qm3")


def test_a10_a_list_is_about_all_of_them() -> None:
    assert resolve("list my jobs", [TESTS, DONE]) == Several((DONE, TESTS))
    assert resolve("list failed jobs", [TESTS, FAILED]) == Several((FAILED,))
    assert resolve("are my jobs done?", [TESTS, DONE]) == Several((DONE, TESTS))
    assert resolve("list my jobs", []) == Several(())
    assert resolve("list failed jobs", [TESTS]) == Several(())


def test_a10_a_question_is_short_whatever_there_is() -> None:
    many = [task(n, f"bg_{n:016}", "x" * 500 + "\n\x1b[31m") for n in range(1, 100)]
    answer = resolve("stop the job", many)
    lines = question(answer).splitlines()
    assert len(lines) == MOST_LISTED + 2
    assert lines[-1] == f"- and {99 - MOST_LISTED} more"
    assert all(len(line) < 120 and line.isprintable() for line in lines)
    assert isinstance(answer, Unclear)
    assert len(answer.candidates) == 99


@pytest.mark.parametrize("text", ["good job", "stop the job?", "don't stop the job", ""])
def test_a10_what_was_not_understood_means_no_task(text: str) -> None:
    assert isinstance(resolve(text, [TESTS]), Unclear)
    assert isinstance(resolve(text, []), Unclear)


states = st.sampled_from(list(State))
sessions = st.lists(
    st.tuples(st.sampled_from(["pytest -q", "make", "npm run build", "", "\0'\""]), states),
    max_size=6,
).map(lambda rows: [task(n, f"bg_{n}", title, state) for n, (title, state) in enumerate(rows)])


@given(st.sampled_from([phrase for phrase, _ in PHRASES]), sessions)
def test_a10_every_phrase_finds_a_target_in_every_session(text: str, tasks: list[Task]) -> None:
    match resolve(text, tasks):
        case One(found):
            assert found in tasks
        case Several(found):
            assert all(each in tasks for each in found)
        case Unclear(said, candidates):
            assert said
            assert all(each in tasks for each in candidates)


@given(st.text(), sessions)
def test_a10_no_text_makes_it_fail(text: str, tasks: list[Task]) -> None:
    resolve(text, tasks)
    resolve(f'stop the job "{text}"', tasks)
    resolve(f"stop job {text}", tasks)
