"""E1: how a call ends, in words that may be told, and what travels with its result."""

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from backburner import (
    ConnectionRequired,
    ErrorKind,
    Image,
    InternalError,
    Outcome,
    State,
    StoreBusy,
    ToolError,
)
from backburner.model.limits import RESULT_MAX_BYTES
from backburner.work.tools.execution import (
    Failure,
    FailureKind,
    carry_out,
    ending_of,
    failure_of,
    outcome_of,
)
from backburner.work.tools.tool import tool_of


async def run(function: Callable[..., Any], **arguments: Any) -> Outcome | Failure:
    tool = tool_of(function)
    return await carry_out(tool, tool.validate(arguments), None)


async def failed(function: Callable[..., Any], **arguments: Any) -> Failure:
    ended = await run(function, **arguments)
    assert isinstance(ended, Failure)
    ending = ended.ending()
    assert (ending.state, ending.error and ending.error.kind) == (State.FAILED, ErrorKind.ERROR)
    return ended


class Account(BaseModel):
    name: str
    password: str


@dataclasses.dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, None),
        (3, 3),
        (0.5, 0.5),
        ("text", "text"),
        (True, True),
        ([1, (2, {3})], [1, [2, [3]]]),
        ({"a": {1: b"bytes"}}, {"a": {"1": "bytes"}}),
        (Point(1), {"x": 1}),
        (Account(name="ada", password="pw"), {"name": "ada", "password": "pw"}),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (float("nan"), None),
    ],
)
async def test_e1_whatever_a_tool_returns_becomes_json(value: Any, result: Any) -> None:
    def give() -> Any:
        return value

    async def give_later() -> Any:
        return value

    assert await run(give) == Outcome(result=result)
    assert await run(give_later) == Outcome(result=result)


recursive: list[Any] = []
recursive.append(recursive)


@pytest.mark.parametrize(
    "value",
    [object(), b"\xff", "\ud800", recursive, 10**5000, {"a": open}],
    ids=["object", "bytes", "surrogate", "recursive", "number", "inner"],
)
async def test_e1_a_result_that_is_no_json_is_a_clear_failure(value: Any) -> None:
    def give() -> Any:
        return value

    failure = await failed(give)
    assert failure.kind is FailureKind.ERROR
    assert failure.message.startswith("ToolError: its result cannot be written as JSON")


async def test_e1_raw_output_travels_beside_a_scalar_result_too() -> None:
    def give() -> Outcome:
        return Outcome(summary="done", result=3, raw_output={"log": (1, 2)})

    ended = await run(give)
    assert ended == Outcome(summary="done", result=3, raw_output={"log": [1, 2]})
    assert isinstance(ended, Outcome)
    ending = ending_of(ended)
    assert (ending.summary, ending.result) == ("done", 3)
    assert "log" not in str(ending.document())


async def test_e1_a_users_own_keys_are_left_alone() -> None:
    mine: dict[str, Any] = {
        "raw_output": 1,
        "images": [],
        "success": False,
        "result": None,
        "summary": "x",
    }

    def give() -> Any:
        return mine

    assert await run(give) == Outcome(result=mine)


async def test_e1_images_travel_with_a_result() -> None:
    picture = Image(b"\x89PNG", name="plot")

    def give() -> Outcome:
        return Outcome(result=[1], images=[picture])

    ended = await run(give)
    assert isinstance(ended, Outcome)
    assert (ended.result, [*ended.images]) == ([1], [picture])

    def lie() -> Outcome:
        return Outcome(images=["picture.png"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]

    assert "images" in (await failed(lie)).message


@pytest.mark.parametrize(
    "images",
    [
        None, "abc", 5, {}, [None], [Image("x")], [Image(b"x", None)],  # pyright: ignore[reportArgumentType]
        [Image(b"x", "png")], [Image(b"x", "image/png\n")], [Image(b"x", "image/png", 3)],  # pyright: ignore[reportArgumentType]
    ],
)  # fmt: skip
async def test_e1_what_is_no_image_is_a_clear_failure(images: Any) -> None:
    def give() -> Outcome:
        return Outcome(result=1, images=images)

    assert "its images" in (await failed(give)).message


@pytest.mark.parametrize(
    ("usage", "kept"),
    [
        ({"tokens": 3, "cost": 0.5, "ok": True, 4: 4, "huge": 2**63, "below": -1}, {"tokens": 3}),
        (5, None),
        ([1], None),
        ({}, None),
    ],
)
async def test_b7_only_what_can_be_counted_is_kept_of_the_usage(usage: Any, kept: Any) -> None:
    def give() -> Outcome:
        return Outcome(usage=usage)

    assert await run(give) == Outcome(usage=kept)


class Twisted:
    """Neither true nor false, and no text."""

    def __bool__(self) -> bool:
        raise RuntimeError("neither")


async def test_e1_an_outcome_of_the_wrong_types_is_a_clear_failure() -> None:
    def neither() -> Outcome:
        return Outcome(success=Twisted())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    def no_text() -> Outcome:
        return Outcome(summary=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    assert (await failed(neither)).message == "RuntimeError: neither"
    assert (await failed(no_text)).message == "ToolError: its summary is no text"


@pytest.mark.parametrize("place", ["result", "raw_output"])
async def test_e1_what_is_too_long_for_a_record_is_a_clear_failure(place: str) -> None:
    def give(size: int) -> Outcome:
        return Outcome(**{place: "x" * size})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    assert isinstance(await run(give, size=RESULT_MAX_BYTES - 2), Outcome)
    message = (await failed(give, size=RESULT_MAX_BYTES - 1)).message
    assert message.startswith(f"ToolError: its {place.replace('_', ' ')} is longer than 1 MiB")
    assert "file" in message


async def test_e1_a_failure_that_the_tool_tells_keeps_its_result() -> None:
    def give() -> Outcome:
        return Outcome(success=False, summary="2 of 3 failed, token=abc", result={"ok": 1})

    ended = await run(give)
    assert isinstance(ended, Outcome)
    ending = ending_of(ended)
    assert ending.state is State.FAILED
    assert ending.error is not None
    assert ending.error.message == "2 of 3 failed, token=[redacted]"
    assert ending.result == {"ok": 1}
    assert ending_of(Outcome(success=False)).error is not None


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("broken as well")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ToolError("no such page", remedy="try another"), "ToolError: no such page (try another)"),
        (ValueError("bad value"), "ValueError: bad value"),
        (TimeoutError(), "TimeoutError"),
        (KeyError("x"), "KeyError: 'x'"),
        (Odd(), "Odd"),
        (RuntimeError("GET https://a:b@c/ token=t"), "RuntimeError: GET https://[redacted]@c/"),
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration(), "RuntimeError"),
        (
            OSError(2, "no such file", "caf\udce9"),
            "FileNotFoundError: [Errno 2] no such file: 'caf",
        ),
        (asyncio.CancelledError(), "CancelledError"),
        (
            ExceptionGroup("many", [ValueError("a"), ExceptionGroup("x", [ToolError("b")])]),
            "ValueError: a; ToolError: b",
        ),
    ],
)
async def test_e1_an_error_is_told_with_type_and_text(error: BaseException, told: str) -> None:
    def give() -> None:
        raise error

    async def give_later() -> None:
        raise error

    for function in (give, give_later):
        failure = await failed(function)
        assert failure.kind is FailureKind.ERROR
        assert failure.message.startswith(told)
        assert len(failure.message) < 200


class Own(BaseException):
    """Nothing of Python's."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit, SystemExit, Own])
async def test_e1_no_call_can_end_the_loop(error: type[BaseException]) -> None:
    async def give() -> None:
        raise error

    assert (await failed(give)).message == error.__name__


async def test_e1_a_blocking_function_cannot_end_the_loop() -> None:
    def give() -> None:
        raise KeyboardInterrupt

    assert (await failed(give)).message == "RuntimeError: the function raised KeyboardInterrupt"


async def test_e1_what_is_told_can_be_written_down() -> None:
    def give() -> None:
        raise ValueError("caf\udce9")

    def summarise() -> Outcome:
        return Outcome(summary="caf\udce9")

    assert (await failed(give)).message == "ValueError: caf?"
    assert await run(summarise) == Outcome(summary="caf?")


async def test_e1_a_long_text_is_cut() -> None:
    async def give() -> None:
        raise ExceptionGroup("many", [ValueError("x" * 100_000) for _ in range(100)])

    assert len((await failed(give)).message) <= 4000


async def test_d9_a_secret_argument_is_in_no_text() -> None:
    async def sign_in(account: Account, api_token: str, note: SecretStr) -> None:
        raise ValueError(f"refused: {account} / {api_token} / {note.get_secret_value()[:1]}")

    failure = await failed(
        sign_in, account={"name": "ada", "password": "s3cret-1"}, api_token="s3cret-2", note="x"
    )
    assert "s3cret" not in failure.message
    assert "ada" in failure.message


@pytest.mark.parametrize("success", [True, False])
async def test_d9_a_secret_argument_is_in_no_summary(success: bool) -> None:
    def sign_in(account: Account, api_token: str, key: SecretStr, odd: Any) -> Outcome:
        told = f"with {account.password}, {api_token} and {key.get_secret_value()}"
        return Outcome(success=success, summary=told, result="ok")

    ended = await run(
        sign_in,
        account={"name": "ada", "password": "s3cret-1"},
        api_token="s3cret-2",
        key="s3cret-3",
        odd=recursive,
    )
    assert isinstance(ended, Outcome)
    assert ended.summary == "with [redacted], [redacted] and [redacted]"
    assert "s3cret" not in str(ending_of(ended).document())


async def test_d9_a_secret_is_not_cut_in_half() -> None:
    def sign_in(password: str) -> Outcome:
        return Outcome(summary="x" * 3995 + password)

    async def fail(password: str) -> None:
        raise ValueError("x" * 3985 + password)

    ended = await run(sign_in, password="s3cret-1")
    assert isinstance(ended, Outcome)
    assert "s3" not in str(ended.summary)
    assert "s3" not in (await failed(fail, password="s3cret-1")).message


async def test_e1_an_internal_error_is_logged_whole_and_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def query(table: str, password: str) -> None:
        refused = OSError(f"10.0.0.3 refused {password}")
        raise InternalError("the database is down") from refused

    with caplog.at_level(logging.ERROR, logger="backburner.tools"):
        failure = await failed(query, table="t" * 1000, password="s3cret")
    assert failure.kind is FailureKind.INTERNAL
    assert failure.reference is not None
    assert failure.reference in failure.message
    assert "database" not in failure.message
    (record,) = caplog.records
    logged = record.getMessage()
    assert record.exc_info is None
    for part in (failure.reference, "OSError: 10.0.0.3 refused", "InternalError: the database"):
        assert part in logged
    assert "direct cause" in logged
    assert "s3cret" not in logged
    assert "t" * 199 + "…" in logged
    assert "t" * 200 not in logged


async def test_e1_a_fault_of_our_own_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    async def busy() -> None:
        raise StoreBusy("write.lock is held by 4711")

    async def hidden_in_a_group() -> None:
        raise ExceptionGroup("many", [ValueError("a"), InternalError("b")])

    with caplog.at_level(logging.ERROR, logger="backburner.tools"):
        for function in (busy, hidden_in_a_group):
            assert (await failed(function)).kind is FailureKind.INTERNAL
        bug = failure_of(ZeroDivisionError(), name="add", arguments={}, ours=True)
        foreseen = failure_of(ToolError("no"), name="add", arguments={}, ours=True)
    assert bug.kind is FailureKind.INTERNAL
    assert foreseen.kind is FailureKind.ERROR


async def test_e1_a_missing_connection_is_neither_success_nor_error() -> None:
    async def post() -> None:
        raise ConnectionRequired("github")

    failure = await failed(post)
    assert (failure.kind, failure.provider) == (FailureKind.CONNECTION, "github")
    assert "github" in failure.message
    assert isinstance(failure.error(), ConnectionRequired)


async def test_d6_a_cancel_from_outside_goes_through() -> None:
    began = asyncio.Event()
    ended: list[str] = []

    async def wait() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    task = asyncio.create_task(run(wait))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled"]


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)


@pytest.mark.slow
@given(documents, documents)
def test_e1_json_comes_back_as_it_was(result: Any, raw: Any) -> None:
    given_outcome = Outcome(result=result, raw_output=raw)
    ended = outcome_of(given_outcome)
    if isinstance(ended, Failure):  # half a surrogate pair is no text
        assert "JSON" in ended.message
    else:
        assert (ended.result, ended.raw_output) == (result, raw)
