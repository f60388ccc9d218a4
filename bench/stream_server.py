"""The servers that `bench.streams` measures: ours, and a bare FastAPI that streams the same bytes.

`python -m bench.stream_server ours|bare HOME TASKS` prints its address and token, then reads lines:
a number makes it tell of so many events, one task after the other, with the time in each.
"""

import asyncio
import contextlib
import json
import resource
import socket
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

PAUSE_S = 0.002
"""Between two events: what is measured is the way of one, not how many fit through."""

Emit = Callable[[int], Awaitable[None]]


def _name(number: int) -> str:
    return f"bg_{number:016d}"


@contextlib.asynccontextmanager
async def ours(home: str, tasks: int) -> AsyncGenerator[tuple[str, str, Emit]]:
    """Events of running tasks: each is a durable commit, read again from the record."""
    from backburner import Backburner, Settings
    from backburner.model.events import EventKind
    from backburner.serve import Binding, Load, serving
    from backburner.store.protocol import Facts

    backburner = Backburner.open(home, settings=Settings(tools_per_worker=tasks))

    @backburner.tool(background=True)
    async def hold() -> None:
        """Run until the end of the measurement."""
        await asyncio.Event().wait()

    async with backburner, serving(backburner, Binding(port=0, load=Load(burst=10**6))) as server:
        for number in range(tasks):
            await backburner.session(f"s{number}").spawn("hold", id=_name(number))

        async def emit(number: int) -> None:
            facts = Facts(data={"sent": time.monotonic_ns(), "text": "x" * 100})
            await backburner.store.note(_name(number), 1, EventKind.DETAIL, facts)

        yield server.address, await server.service.tokens.local(), emit


@contextlib.asynccontextmanager
async def bare(_: str, tasks: int) -> AsyncGenerator[tuple[str, str, Emit]]:
    """A queue for each reader: no record, no token, no limits."""
    import uvicorn
    from fastapi import FastAPI
    from fastapi.responses import StreamingResponse
    from fastapi.sse import format_sse_event

    app = FastAPI()
    readers: list[set[asyncio.Queue[bytes]]] = [set() for _ in range(tasks)]

    @app.get("/v1/tasks/{id}/events")
    async def events(id: str) -> StreamingResponse:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        readers[int(id.removeprefix("bg_"))].add(queue)

        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield await queue.get()

        return StreamingResponse(pieces(), media_type="text/event-stream")

    sequence = 0

    async def emit(number: int) -> None:
        nonlocal sequence
        sequence += 1
        data = {
            "task": _name(number),
            "session": f"s{number}",
            "kind": "detail",
            "at": "2026-11-15T09:30:00.000000Z",
            "data": {"sent": time.monotonic_ns(), "text": "x" * 100},
            "state": "running",
        }
        piece = format_sse_event(data_str=json.dumps(data), event="detail", id=str(sequence))
        for queue in readers[number]:
            queue.put_nowait(piece)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(2048)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        config.timeout_graceful_shutdown = 1
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve(sockets=[listening]))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", "", emit
        server.should_exit = True
        await running


async def main(which: str, home: str, tasks: int) -> None:
    """Until standard input ends."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    async with (ours if which == "ours" else bare)(home, tasks) as (address, token, emit):
        print(json.dumps({"url": address, "token": token}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            for number in range(int(line)):
                await emit(number % tasks)
                await asyncio.sleep(PAUSE_S)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
