"""Events as they happen: nothing twice, nothing missed, whoever restarts or falls behind."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client import Counter

from backburner.model.events import EventKind
from backburner.model.task import Task
from backburner.serve import Binding, Load, serving
from backburner.serve.stream import missed_of_task
from backburner.store.protocol import Facts, Scope
from tests.serve.client import Api, Streamed, holding, is_problem
from tests.waiting import wait_until_async


async def begin(api: Api, id: str, session: str = "chat", owner: str = "local") -> Task:
    """A task that runs until `end`."""
    return await api.held_task(id, session=session, owner=owner)


async def say(api: Api, task: Task, text: str) -> None:
    assert await api.backburner.store.note(
        task.id, task.attempt, EventKind.DETAIL, Facts(detail=text[:100], data={"text": text})
    )


async def end(api: Api, task: Task) -> None:
    await api.let_go(task)


async def take(stream: AsyncIterator[Streamed], count: int) -> list[Streamed]:
    async with asyncio.timeout(30):
        return [await anext(stream) for _ in range(count)]


async def rest(stream: AsyncIterator[Streamed]) -> list[Streamed]:
    async with asyncio.timeout(30):
        return [each async for each in stream]


async def test_the_events_of_a_task_come_from_its_beginning_to_its_end(api: Api) -> None:
    task = await begin(api, "bg_one")
    other = await begin(api, "bg_other")
    async with api.stream("/v1/tasks/bg_one/events") as stream:
        first = await take(stream, 2)
        assert [each.event for each in first] == ["created", "started"]
        await say(api, other, "not for this reader")
        await say(api, task, "hello")
        await end(api, task)
        later = await rest(stream)
    assert [each.event for each in later] == ["detail", "finished"]
    assert later[0].data["data"]["text"] == "hello"
    assert {each.data["task"] for each in [*first, *later]} == {"bg_one"}
    assert later[-1].data["state"] == "succeeded"
    history = await api.json("/v1/tasks/bg_one/history")
    assert [str(event["seq"]) for event in history["items"]] == [
        each.id for each in [*first, *later]
    ]
    await end(api, other)


async def test_a_reader_goes_on_where_it_was(api: Api) -> None:
    task = await begin(api, "bg_one")
    await say(api, task, "first")
    async with api.stream("/v1/tasks/bg_one/events") as stream:
        seen = await take(stream, 3)
    await say(api, task, "second")
    last = int(seen[-1].id or 0)
    async with api.stream("/v1/tasks/bg_one/events", last=last) as stream:
        (again,) = await take(stream, 1)
        assert again.data["data"]["text"] == "second"
        await end(api, task)
        (finished,) = await rest(stream)
    done = await api.get("/v1/tasks/bg_one/events", headers={"Last-Event-ID": finished.id or ""})
    assert (done.status_code, done.content) == (204, b""), "a browser does not come back then"
    await say_nothing_more(api)


async def test_an_end_that_comes_while_rows_are_read_is_an_end(api: Api) -> None:
    """A reader that forgot it would stay for good: nothing more comes."""
    task = await begin(api, "bg_one")
    hub, store = api.server.service.hub, api.backburner.store
    reader = hub.join(Scope("local"), task.id, "test")
    await end(api, task)
    await wait_until_async(lambda: reader.finished)
    pieces = [piece async for piece in missed_of_task(store, reader, 0)]
    assert b"finished" not in b"".join(pieces), "that comes from the hub"
    assert reader.finished
    hub.leave(reader)


async def say_nothing_more(api: Api) -> None:
    """Every reader has been taken off the list."""
    await wait_until_async(lambda: len(api.server.service.hub) == 0)


async def test_all_events_within_reach_and_no_others(api: Api) -> None:
    bob = await api.new_token(owner="bob")
    only_work = await api.new_token(session="work")
    async with (
        api.stream("/v1/events") as everything,
        api.stream("/v1/events", only_work) as works,
        api.stream("/v1/events", bob) as bobs,
    ):
        await wait_until_async(lambda: len(api.server.service.hub) == 3)
        tasks = [
            await begin(api, "bg_chat"),
            await begin(api, "bg_work", "work"),
            await begin(api, "bg_bob", owner="bob"),
        ]
        for task in tasks:
            await end(api, task)
        assert {each.data["task"] for each in await take(everything, 6)} == {"bg_chat", "bg_work"}
        assert {each.data["task"] for each in await take(works, 3)} == {"bg_work"}
        assert {each.data["task"] for each in await take(bobs, 3)} == {"bg_bob"}
    assert is_problem(await api.get("/v1/tasks/bg_chat/events", bob), 404, "not_found")


async def test_a_restart_of_the_server_loses_and_repeats_nothing(home: Path) -> None:
    seen: list[str] = []
    told: list[str] = []

    async def read(api: Api, last: int | None, count: int) -> int:
        async with api.stream("/v1/events", last=last) as stream:
            for each in await take(stream, count):
                seen.append(each.data["data"]["text"])
                last = int(each.id or 0)
        assert last is not None
        return last

    async with holding(home) as backburner:
        last: int | None = None
        task: Task | None = None
        api: Api | None = None
        for life in range(3):
            async with serving(backburner, Binding(port=0)) as server:
                api = Api(backburner, server)
                task = task or await begin(api, "bg_one")
                last = await backburner.store.last_event() if last is None else last
                for number in range(3):
                    told.append(f"{life}.{number}")
                    await say(api, task, told[-1])
                last = await read(api, last, 4 if life else 3)
                await api.close()
            told.append(f"between {life}")
            await say(api, task, told[-1])  # while no server is there
        assert task is not None
        assert api is not None
        await end(api, task)
    assert seen == told[:-1]


@pytest.mark.parametrize("binding", [Binding(port=0, load=Load(keep_alive_s=0.05))])
async def test_silence_is_kept_alive_and_a_token_that_was_taken_back_ends_it(
    api: Api, binding: Binding
) -> None:
    token = await api.new_token()
    async with api.client.stream("GET", "/v1/events", headers=api.headers(token)) as answer:
        lines = answer.aiter_lines()
        async with asyncio.timeout(30):
            while await anext(lines) != ": alive":
                pass
            await api.server.service.tokens.revoke(token.split("_")[1])
            text = "\n".join([line async for line in lines])
    assert '"reason": "revoked"' in text


async def test_the_end_of_the_server_ends_streams_in_order(home: Path) -> None:
    async with holding(home) as backburner:
        async with serving(backburner, Binding(port=0)) as server:
            api = Api(backburner, server)
            async with contextlib.AsyncExitStack() as streams:
                stream = await streams.enter_async_context(api.stream("/v1/events"))
                reading = asyncio.create_task(rest(stream))
                await wait_until_async(lambda: len(server.service.hub) == 1)
                server.service.hub.close()
                (note,) = await reading
                assert (note.event, note.data["reason"]) == ("stream", "shutdown")
            await api.close()
        assert len(server.service.hub) == 0


@pytest.mark.parametrize("binding", [Binding(port=0, load=Load(replayed=5))])
async def test_who_was_away_for_long_is_told_to_look_anew(api: Api, binding: Binding) -> None:
    task = await begin(api, "bg_one")
    for number in range(6):
        await say(api, task, str(number))
    async with api.stream("/v1/events", last=1) as stream:
        (note,) = await take(stream, 1)
        assert (note.event, note.data["reason"]) == ("stream", "reset")
        await end(api, task)
        (after,) = await take(stream, 1)
        assert int(after.id or 0) > int(note.id or 0)


SLOW = Load(event_backlog=10)


@pytest.mark.slow
@pytest.mark.parametrize("binding", [Binding(port=0, load=SLOW)])
async def test_a_reader_that_does_not_read_is_dropped_and_loses_nothing(
    api: Api, binding: Binding
) -> None:
    """X3: what waits for one reader is bounded. It is told, and reads what it missed anew."""
    task = await begin(api, "bg_one")
    host, _, port = api.server.address.removeprefix("http://").partition(":")
    loop = asyncio.get_running_loop()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        await loop.sock_connect(slow, (host, int(port)))
        head = (
            f"GET /v1/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {api.token}\r\n\r\n"
        )
        await loop.sock_sendall(slow, head.encode())
        await wait_until_async(lambda: len(api.server.service.hub) == 1)
        dropped = api.server.service.measures.dropped
        count = 0
        while not _value(dropped) and count < 2000:
            await say(api, task, f"{count} {'x' * 50_000}")
            count += 1
        assert _value(dropped) == 1
        received = bytearray()
        async with asyncio.timeout(60):
            while b'"reason": "slow"' not in received:
                piece = await loop.sock_recv(slow, 1 << 20)
                assert piece, "it ended without a note"
                received += piece
        ids = [int(line[4:]) for line in bytes(received).split(b"\n") if line.startswith(b"id: ")]
        assert ids == sorted(set(ids))
    first, last = ids[0], ids[-1]
    missing = await api.backburner.store.last_event() - last
    assert missing > 0
    async with api.stream("/v1/events", last=last) as stream:
        again = await take(stream, missing)
    assert [int(each.id or 0) for each in again] == list(range(last + 1, last + 1 + missing))
    assert first >= 1
    await end(api, task)


def _value(counter: Counter) -> float:
    return next(sample.value for metric in counter.collect() for sample in metric.samples)


@pytest.mark.parametrize("binding", [Binding(port=0, load=Load(streams=2))])
async def test_there_is_a_limit_to_readers(api: Api, binding: Binding) -> None:
    async with api.stream("/v1/events"), api.stream("/v1/events"):
        answer = await api.get("/v1/events")
        assert is_problem(answer, 503, "too_many_readers")
        assert int(answer.headers["retry-after"]) > 0
    await say_nothing_more(api)
    async with api.stream("/v1/events"):
        pass


async def test_a_place_that_is_none_is_refused(api: Api) -> None:
    for place in ("x", "-1", "9" * 30):
        answer = await api.get("/v1/events", headers={"Last-Event-ID": place})
        assert is_problem(answer, 422, "usage")
