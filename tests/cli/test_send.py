"""`backburner send`: answers, input, and what nobody asked for."""

from pathlib import Path

import pytest

from tests.cli.golden import Golden
from tests.cli.program import COMMAND, Program
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PROGRAM = " ".join(COMMAND)


def asks(backburner: Program, task: str, count: int = 1) -> list[str]:
    """The ids of its questions, once so many are open."""

    def enough() -> list[str] | None:
        questions = backburner("show", "--json", task).json["questions"]
        found = [each["id"] for each in questions if each["answered_at"] is None]
        return found if len(found) == count else None

    return wait_until(enough)


def test_x5_the_oldest_question_is_answered_or_the_one_that_is_named(backburner: Program) -> None:
    task = backburner(
        "run", "--", f"({PROGRAM} ask one; echo) & sleep 0.3; {PROGRAM} ask two; wait"
    ).id
    first, second = asks(backburner, task, 2)
    done = backburner("send", "--question", second, task, "for two")
    assert (done.code, done.out) == (0, "")
    assert f"answered question {second} of" in done.err
    done = backburner("send", task, "-", stdin="for\none\n")
    assert f"answered question {first} of" in done.err
    assert backburner("wait", task).code == 0
    assert sorted(backburner("logs", task).out.split()) == ["for", "for", "one", "two"]


def test_x5_input_goes_to_a_task_that_takes_some(backburner: Program) -> None:
    task = backburner("run", "--stdin", "--", "cat").id
    wait_until(lambda: backburner("ls", "-q", "--state", "running").out)
    assert backburner("send", task, "one").code == 0
    assert backburner("send", "--raw", task, "two, ").code == 0
    assert backburner("send", "--json", task, "three").json == {
        "task": task,
        "sent": "input",
        "question": None,
    }
    assert backburner("send", "--eof", "--json", task).json["sent"] == "eof"
    assert backburner("wait", task).code == 0
    assert backburner("logs", task).out == "one\ntwo, three\n"


def test_x5_an_answer_comes_before_input(backburner: Program) -> None:
    task = backburner("run", "--stdin", "--", f"{PROGRAM} ask one; cat").id
    asks(backburner, task)
    assert backburner("send", task, "the answer").code == 0
    assert backburner("send", task, "the input").code == 0
    assert backburner("send", "--eof", task).code == 0
    assert backburner("wait", task).code == 0
    assert backburner("logs", task).out == "the answer\nthe input\n"


def test_x5_what_cannot_be_sent(backburner: Program, golden: Golden, home: Path) -> None:
    task = backburner("run", "--id", "silent", "--", "sleep 60").id
    wait_until(lambda: backburner("ls", "-q", "--state", "running").out)
    over = backburner("run", "--id", "over", "--", "true").id
    backburner("wait", over)
    calls = {
        ("send", task, "yes"): 1,
        ("send", "--question", "q", task, "yes"): 1,
        ("send", "--eof", task): 1,
        ("send", over, "yes"): 1,
        ("send", "none", "yes"): 3,
        ("send", task): 2,
        ("send", "--eof", task, "yes"): 2,
        ("send", "--eof", "--raw", task): 2,
    }
    said: list[str] = []
    for call, code in calls.items():
        done = backburner(*call)
        assert (done.code, done.out) == (code, ""), call
        said.append(f"$ backburner {' '.join(call)}\n{done.err}")
    golden.check("send-refused", "\n".join(said))
    kinds = [each["kind"] for each in backburner("show", "--json", task).json["events"]]
    assert kinds == ["created", "started"]
    backburner("stop", "--force", task)


@pytest.mark.parametrize(("text", "code"), [("x" * 2**20, 0), ("x" * (2**20 + 1), 2)])
def test_x5_a_megabyte_is_the_limit(backburner: Program, text: str, code: int) -> None:
    task = backburner("run", "--", f"{PROGRAM} ask one | wc -c").id
    asks(backburner, task)
    assert backburner("send", task, "-", stdin=text).code == code
    if code:
        asks(backburner, task)
        backburner("stop", "--force", task)
    else:
        assert backburner("wait", task).code == 0
        assert backburner("logs", task).out.strip() == str(2**20 + 1)
