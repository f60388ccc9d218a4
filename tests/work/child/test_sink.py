"""E5, E12: what a call in a process of its own says, asks and hears."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from backburner import BackburnerError, TimeIsUp, UsageError
from backburner.model.home import AttemptFolder
from backburner.work.child.sink import ReportSink
from backburner.work.report import Advance, Status, parse
from backburner.work.tools.context import Context
from tests.waiting import wait_until_async


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    return AttemptFolder(str(tmp_path))


@pytest.fixture
def context(folder: AttemptFolder) -> Context:
    return Context(ReportSink(folder))


def reported(folder: AttemptFolder) -> list[dict[str, Any]]:
    path = Path(folder.report)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def put(folder: str, name: str, text: str) -> None:
    """As the keeper does: by rename."""
    os.makedirs(folder, exist_ok=True)
    new = Path(folder).parent / "new"
    new.write_text(text)
    new.rename(f"{folder}/{name}")


def test_e5_status_and_progress_are_lines_of_the_report(
    context: Context, folder: AttemptFolder
) -> None:
    context.status('half\n"way"')
    context.progress(1, 4, "files", "copying")
    lines = Path(folder.report).read_bytes().splitlines()
    first, second = map(parse, lines)
    assert first == Status('half "way"')
    assert isinstance(second, Advance)
    assert (second.progress.current, second.progress.unit) == (1, "files")


async def test_e12_an_answer_is_waited_for(context: Context, folder: AttemptFolder) -> None:
    asking = asyncio.create_task(context.ask("which?"))
    (line,) = await wait_until_async(lambda: reported(folder))
    assert line["ask"]["question"] == "which?"
    put(folder.answers, line["ask"]["id"], "this one\n")
    assert await asking == "this one\n"
    assert len(reported(folder)) == 1


@pytest.mark.parametrize(
    ("schema", "answer", "value"),
    [
        ({"type": "integer"}, "42", 42),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
        ({"type": "string"}, "42", "42"),
    ],
)
async def test_e12_an_answer_with_a_schema_is_a_value(
    context: Context, folder: AttemptFolder, schema: dict[str, Any], answer: str, value: Any
) -> None:
    asking = asyncio.create_task(context.ask("how many?", schema=schema))
    (line,) = await wait_until_async(lambda: reported(folder))
    assert line["ask"]["schema"] == schema
    put(folder.answers, line["ask"]["id"], answer)
    assert await asking == value


async def test_e12_who_waits_no_longer_withdraws_the_question(
    context: Context, folder: AttemptFolder
) -> None:
    with pytest.raises(TimeIsUp):
        await context.ask("anybody?", timeout=0.01)
    asked, withdrawn = reported(folder)
    assert withdrawn == {"withdraw": asked["ask"]["id"]}
    asking = asyncio.create_task(context.ask("still there?"))
    await wait_until_async(lambda: len(reported(folder)) == 3)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert "withdraw" in reported(folder)[-1]


async def test_e12_nobody_answers_a_task_that_has_ended(
    context: Context, folder: AttemptFolder
) -> None:
    asking = asyncio.create_task(context.ask("which?"))
    await wait_until_async(lambda: reported(folder))
    put(f"{folder.path}/x", "y", "{}")
    os.rename(f"{folder.path}/x/y", folder.result)
    with pytest.raises(BackburnerError, match="has ended"):
        await asking


@pytest.mark.parametrize("question", ["", "  ", "x" * 9000])
async def test_e12_a_question_has_a_text(context: Context, question: str) -> None:
    with pytest.raises(UsageError):
        await context.ask(question)


async def test_e12_messages_come_once_and_in_order(context: Context, folder: AttemptFolder) -> None:
    put(folder.messages, "9", "nine")
    put(folder.messages, "10", "ten")
    put(folder.messages, "not one", "?")
    assert await context.receive() == "nine"
    assert await context.receive() == "ten"
    receiving = asyncio.create_task(context.receive())
    with pytest.raises(TimeIsUp):
        await context.receive(timeout=0.01)
    put(folder.messages, "11", "eleven")
    assert await receiving == "eleven"


async def test_e12_what_is_told_is_a_line_of_the_report(
    context: Context, folder: AttemptFolder
) -> None:
    await context.tell("found something")
    assert reported(folder) == [{"tell": "found something"}]


def test_x3_a_report_that_cannot_be_written_ends_nothing(folder: AttemptFolder) -> None:
    os.mkfifo(folder.report)
    context = Context(ReportSink(folder))
    context.status("x")
    context.progress(1)
