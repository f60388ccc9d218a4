"""A client of the API, and what it finds there."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import httpx2

from backburner import Backburner
from backburner.model import ids
from backburner.model.ending import Ending
from backburner.model.states import Kind
from backburner.model.task import NewTask, Place, Task
from backburner.serve.server import Serving
from backburner.store.protocol import Scope

TIME_LIMIT = 60.0

SPEC: dict[str, Any] = {
    "command": "true",
    "cwd": "/",
    "env": {},
    "separate_stderr": False,
    "log": [1000, 1000],
}


@dataclass(frozen=True, slots=True)
class Streamed:
    """One server-sent event."""

    id: str | None
    event: str
    data: Any


class Api:
    """A running server, and requests to it with any token."""

    def __init__(self, backburner: Backburner, server: Serving) -> None:
        self.backburner = backburner
        self.server = server
        self.token = Path(backburner.home.token).read_text(encoding="ascii").strip()
        self.client = httpx2.AsyncClient(base_url=server.address, timeout=TIME_LIMIT)

    def headers(self, token: str | None = None) -> dict[str, str]:
        """Those that show a token; that of the local admin unless given."""
        return {"Authorization": f"Bearer {token or self.token}"}

    async def get(self, path: str, token: str | None = None, **options: Any) -> httpx2.Response:
        headers = {**self.headers(token), **options.pop("headers", {})}
        return await self.client.get(path, headers=headers, **options)

    async def post(
        self, path: str, body: Any = None, token: str | None = None, **options: Any
    ) -> httpx2.Response:
        headers = {**self.headers(token), **options.pop("headers", {})}
        return await self.client.post(path, json=body, headers=headers, **options)

    async def json(self, path: str, **options: Any) -> Any:
        """What a GET that works answers."""
        answer = await self.get(path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def new_token(self, **options: Any) -> str:
        """A further token."""
        return (await self.server.service.tokens.create("test", **options))[1]

    async def ended_task(
        self,
        id: str | None = None,
        *,
        owner: str = "local",
        session: str = "chat",
        title: str = "true",
        ending: Ending | None = None,
        kind: Kind = Kind.SHELL,
        spec: dict[str, Any] | None = None,
        parent: str | None = None,
    ) -> Task:
        """A task that has ended, and never ran: nobody has to be there for it."""
        new = NewTask(
            id or ids.new_id(), owner, session, kind, title, spec or SPEC, 60.0, parent=parent
        )
        store = self.backburner.store
        begun, _ = await store.begin(new, Place("boot", 1, 4711), limit=None)
        done = await store.finish(begun.id, begun.attempt, ending or Ending.exited(0))
        assert done is not None
        return done

    async def held_task(self, id: str, *, owner: str = "local", session: str = "chat") -> Task:
        """A task that runs until `let_go`."""
        here = self.backburner.session(session, owner=owner)
        return (await here.spawn("hold", {"name": id}, id=id)).record

    async def let_go(self, task: Task) -> None:
        """Returns when it has ended."""
        _held(self.backburner).setdefault(task.id, asyncio.Event()).set()
        await self.backburner.tasks.wait(task.id, Scope(task.owner, task.session), 30)

    @asynccontextmanager
    async def stream(
        self, path: str, token: str | None = None, last: int | None = None
    ) -> AsyncGenerator[AsyncIterator[Streamed]]:
        """Server-sent events, as they come."""
        headers = self.headers(token)
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        async with self.client.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200, (answer.status_code, await answer.aread())
            yield _events(answer.aiter_lines())

    async def close(self) -> None:
        await self.client.aclose()


def holding(home: Path) -> Backburner:
    """A Backburner with a tool that runs until it is let go."""
    backburner = Backburner.open(home)

    @backburner.tool(background=True)
    async def hold(name: str) -> str:  # pyright: ignore[reportUnusedFunction]  # called by name
        """Wait."""
        await _held(backburner).setdefault(name, asyncio.Event()).wait()
        return name

    return backburner


_all_held: WeakKeyDictionary[Backburner, dict[str, asyncio.Event]] = WeakKeyDictionary()


def _held(backburner: Backburner) -> dict[str, asyncio.Event]:
    return _all_held.setdefault(backburner, {})


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[Streamed]:
    fields: dict[str, str] = {}
    async for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        else:
            if "event" in fields:
                yield Streamed(fields.get("id"), fields["event"], json.loads(fields["data"]))
            fields = {}


def is_problem(answer: httpx2.Response, status: int, code: str) -> bool:
    """Whether this is that problem, in every detail that RFC 9457 asks for."""
    assert answer.status_code == status, (answer.status_code, answer.text)
    assert answer.headers["content-type"] == "application/problem+json", answer.headers
    body = answer.json()
    assert set(body) == {"type", "title", "status", "detail", "code", "remedy"}
    assert body["status"] == status
    assert body["type"] == f"urn:backburner:problem:{body['code']}"
    assert body["code"] == code, body
    return True
