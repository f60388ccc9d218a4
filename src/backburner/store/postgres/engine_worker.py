"""The part of a node that is a worker of Procrastinate: it fetches jobs, and says that it lives."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field
from typing import TypedDict, cast

import procrastinate
import psycopg
from procrastinate import sql
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job as EngineJob
from procrastinate.manager import JobManager
from procrastinate.worker import Worker

from backburner.model.task import Task
from backburner.model.values import value
from backburner.store.engine import Job
from backburner.store.postgres.connection import explain
from backburner.store.postgres.engine import TASK
from backburner.store.postgres.engine_connection import EngineConnection
from backburner.store.postgres.texts import meant_value
from backburner.store.record.rows import CHANGED_TASK, to_task

_AGAIN_S = 1.0
_LETS_GO_S = 1.0
"""How long a worker that begins anew waits for its jobs, which go on without it."""

_FORGOTTEN_S = 86400.0
"""Procrastinate forgets workers of its own that were silent for so long. Which of ours are dead
is said by each of them, and asked by `Engine.silent`."""


_FETCH = f"""
WITH fetched AS MATERIALIZED ({sql.queries["fetch_job"].strip().removesuffix(";")})
SELECT fetched.*, (
    SELECT json_build_array(json_build_array({CHANGED_TASK}),
                            (SELECT content FROM secret WHERE name = t.hand_over))
    FROM task t WHERE t.id = fetched.args ->> 'task') AS brought
FROM fetched"""  # noqa: S608 - of constants
"""Procrastinate's own question, with the task that the job is of and what that is started with, in
one round trip. Not as a join: while there are few tasks, that of all of them would be made."""


_REGISTER = """
SELECT worker_id, set_config('synchronous_commit', 'on', true)
FROM procrastinate_register_worker_v1()"""
"""Procrastinate's own, and on disk when it is answered, as most of what its worker says need not
be: a crash would take the number back, and give it to the next one. The two would die as one."""


@value
class Brought:
    """A task as it was when its job was fetched."""

    task: Task
    secret: str | None = field(repr=False)
    """What lies under the name of its `hand_over`."""


class Arguments(TypedDict):
    """What a job of the engine is called with."""

    task: str
    attempt: int


class _Jobs(JobManager):
    """Procrastinate's own questions, and what has to be done before and after some of them."""

    def __init__(
        self,
        connection: EngineConnection,
        appear: Callable[[int], Awaitable[None]],
        unheard: Callable[[int, Job | None], Awaitable[None]],
        has_room: Callable[[], bool],
    ) -> None:
        super().__init__(connection)
        self._connection = connection
        self._appear = appear
        self._unheard = unheard
        self._has_room = has_room
        self.fetched: dict[Job, Brought] = {}

    async def register_worker(self) -> int:
        """On record under its number before it fetches: what it has is then known if it dies."""
        row = await self._connection.execute_query_one_async(_REGISTER)
        number: int = row["worker_id"]
        await self._appear(number)
        return number

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> EngineJob | None:
        """What was brought by an answer that nobody heard is given back at once. Nothing is fetched

        where there is no room: the worker counts only what it has fetched itself.

        A notice that comes meanwhile is of a job that this may not have seen, and the worker would
        not look again for it: it forgets what it hears while it fetches.
        """
        if not self._has_room():
            return None
        connection, fetched, heard_of = self._connection, None, -1
        lost = connection.lost
        while fetched is None and heard_of != connection.heard:
            heard_of = connection.heard
            fetched = await self._fetch(queues, worker_id)
        if connection.lost != lost:
            heard = None if fetched is None else Job(**cast("Arguments", fetched.task_kwargs))
            await self._unheard(worker_id, heard)
        return fetched

    async def _fetch(self, queues: Iterable[str] | None, worker_id: int) -> EngineJob | None:
        row = await self._connection.execute_query_one_async(
            _FETCH, queues=queues, worker_id=worker_id
        )
        if row["id"] is None:
            return None
        job = Job(**row["args"])
        if row["brought"] is not None:  # else it was not there yet when the question was put
            columns, secret = row["brought"]
            task = to_task(tuple(map(meant_value, columns)))
            if task.attempt == job.attempt:
                self.fetched[job] = Brought(task, secret and meant_value(secret))
        return EngineJob.from_row(row)


class EngineWorker:
    """Brings jobs to ``carry_out``, so many at once, until it is told to stop."""

    def __init__(
        self,
        address: str,
        *,
        routes: Sequence[str],
        concurrency: int,
        heartbeat_s: float,
        appear: Callable[[int], Awaitable[None]],
        unheard: Callable[[int, Job | None], Awaitable[None]],
        carry_out: Callable[[Job, Brought | None], Awaitable[None]],
        report: Callable[[str], None],
        taken: Callable[[], int] = lambda: 0,
    ) -> None:
        """``appear`` is told under which number it is about to work, each time that it begins anew;

        ``unheard`` that under such a number something may have been fetched that did not arrive,
        beside what has. ``carry_out`` gets the task with its job, if it can. So many places are
        ``taken`` beside those of what it has brought.
        """
        for name in ("procrastinate", "psycopg.pool"):  # we report ourselves
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._connection = EngineConnection(address, report)
        self._app = procrastinate.App(connector=self._connection)
        self._app.job_manager = jobs = _Jobs(
            self._connection, self._appears, unheard, self._has_room
        )
        self._routes = list(routes)
        self._concurrency = concurrency
        self._heartbeat_s = heartbeat_s
        self._appear = appear
        self._report = report
        self._worker: Worker | None = None
        self.number: int | None = None
        """Under which it works; None while it begins, and when it has ended."""
        self._appeared = asyncio.Event()
        self._other_routes = asyncio.Event()
        self._stopping = False
        self._taken = taken
        self._waits_for_room = False
        self._looking: asyncio.Task[None] | None = None
        self._carrying: set[asyncio.Future[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        """Workers of earlier routes, for as long as their jobs last."""

        async def bring(task: str, attempt: int) -> None:
            # A task of ours: it can be ended whatever its worker is about.
            job = Job(task, attempt)
            carrying = asyncio.ensure_future(carry_out(job, jobs.fetched.pop(job, None)))
            self._carrying.add(carrying)
            carrying.add_done_callback(self._carried)
            await carrying

        self._app.task(name=TASK)(bring)

    async def run(self) -> None:
        """Returns when `stop` was called and the last job is over."""
        async with self._app.open_async():
            try:
                while not self._stopping:
                    try:
                        await self._run_once()
                    except Exception as error:  # noqa: BLE001 - jobs depend on us: begin anew
                        self._report(f"the engine was lost: {_said(error)}")
                        await asyncio.sleep(_AGAIN_S)
                if self._leaving:
                    await asyncio.wait(self._leaving)
            finally:
                self._let_go()
                if self._leaving:
                    await asyncio.wait(self._leaving)

    def _has_room(self) -> bool:
        """Asked before each fetch. Where there is none, whoever makes some says so."""
        room = len(self._carrying) + self._taken() < self._concurrency
        self._waits_for_room = not room
        return room

    def _carried(self, carrying: "asyncio.Future[None]") -> None:
        self._carrying.discard(carrying)
        self.look_again()

    def look_again(self) -> None:
        """There may be room for one more."""
        if self._waits_for_room:
            self._waits_for_room = False
            self._looking = asyncio.ensure_future(self._connection.look())

    def begin_anew(self) -> None:
        """Under another number: the engine has forgotten this one, and would give it no job."""
        self.number = None
        if self._worker is not None:
            self._worker.stop()

    async def _run_once(self) -> None:
        """Until it is stopped, or its routes are others: what it has then goes on."""
        self._other_routes.clear()
        self._appeared.clear()
        worker = self._worker = Worker(
            self._app,
            queues=list(self._routes),
            concurrency=self._concurrency,
            install_signal_handlers=False,
            # It also ends by itself, when the engine has forgotten it: jobs go on without it.
            shutdown_graceful_timeout=_LETS_GO_S,
            update_heartbeat_interval=self._heartbeat_s,
            stalled_worker_timeout=_FORGOTTEN_S,
            delete_jobs="always",
        )
        running = asyncio.create_task(worker.run())
        other_routes = asyncio.create_task(self._until_other_routes())
        try:
            await asyncio.sleep(0)
            if self._stopping:  # it forgets what it was told before it ran
                _end_with_its_jobs(worker)
            await asyncio.wait((running, other_routes), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            else:
                _end_with_its_jobs(worker)
                self._leaving.add(running)
                running.add_done_callback(self._left)
        except BaseException as error:
            worker.shutdown_graceful_timeout = _LETS_GO_S
            if isinstance(error, asyncio.CancelledError):
                self._let_go()  # a worker that was drained waits for its jobs, whatever it is told
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            raise
        finally:
            other_routes.cancel()
            self.number = None

    async def _appears(self, number: int) -> None:
        self.number = number
        await self._appear(number)
        self._appeared.set()

    async def _until_other_routes(self) -> None:
        """Not before it has appeared: it would do so after the one that follows it."""
        await self._appeared.wait()
        await self._other_routes.wait()

    def _let_go(self) -> None:
        self._connection.gives_up = True
        for carrying in self._carrying:
            carrying.cancel()

    def _left(self, running: "asyncio.Task[None]") -> None:
        self._leaving.discard(running)
        if not running.cancelled() and (error := running.exception()) is not None:
            self._report(f"the engine was lost: {_said(error)}")

    def take_from(self, routes: Sequence[str]) -> None:
        """From these routes from now on; what it has goes on."""
        if sorted(routes) != sorted(self._routes):
            self._routes = list(routes)
            self._other_routes.set()

    def stop(self) -> None:
        """Fetch nothing more."""
        self._stopping = True
        if self._worker is not None:
            _end_with_its_jobs(self._worker)


def _end_with_its_jobs(worker: Worker) -> None:
    worker.shutdown_graceful_timeout = None
    worker.stop()


def _said(error: BaseException) -> str:
    """What Procrastinate says of a failure of the database is only that there was one."""
    cause = error.__cause__
    if isinstance(error, ConnectorException) and isinstance(cause, psycopg.Error):
        return str(explain(cause))
    return f"{type(error).__name__}: {error}"
