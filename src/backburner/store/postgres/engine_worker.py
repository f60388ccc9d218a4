"""The part of a node that is a worker of Procrastinate: it fetches jobs, and says that it lives."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import procrastinate
from procrastinate.worker import Worker

from backburner.store.engine import Job
from backburner.store.postgres.engine import TASK
from backburner.store.postgres.engine_connection import EngineConnection

_APPEARS_S = 0.01
_AGAIN_S = 1.0
_LETS_GO_S = 1.0
"""How long a worker that begins anew waits for its jobs, which go on without it."""

_FORGOTTEN_S = 86400.0
"""Procrastinate forgets workers of its own that were silent for so long. Which of ours are dead
is said by each of them, and asked by `Engine.stalled`."""


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
        carry_out: Callable[[Job], Awaitable[None]],
        report: Callable[[str], None],
    ) -> None:
        """``appear`` is told under which number it works, each time that it begins anew."""
        for name in ("procrastinate", "psycopg.pool"):  # we report ourselves
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._connection = EngineConnection(address, report)
        self._app = procrastinate.App(connector=self._connection)
        self._routes = list(routes)
        self._concurrency = concurrency
        self._heartbeat_s = heartbeat_s
        self._appear = appear
        self._report = report
        self._worker: Worker | None = None
        self.number: int | None = None
        """Under which it works; None while it begins, and when it has ended."""
        self._other_routes = asyncio.Event()
        self._stopping = False
        self._carrying: set[asyncio.Future[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        """Workers of earlier routes, for as long as their jobs last."""

        async def bring(task: str, attempt: int) -> None:
            # A task of ours: it can be ended whatever its worker is about.
            carrying = asyncio.ensure_future(carry_out(Job(task, attempt)))
            self._carrying.add(carrying)
            carrying.add_done_callback(self._carrying.discard)
            await carrying

        self._app.task(name=TASK)(bring)

    async def run(self) -> None:
        """Returns when `stop` was called and the last job is over."""
        async with self._opened():
            try:
                while not self._stopping:
                    try:
                        await self._run_once()
                    except Exception as error:  # noqa: BLE001 - jobs depend on us: begin anew
                        self._report(f"the engine was lost: {type(error).__name__}: {error}")
                        await asyncio.sleep(_AGAIN_S)
                if self._leaving:
                    await asyncio.wait(self._leaving)
            finally:
                self._let_go()
                if self._leaving:
                    await asyncio.wait(self._leaving)

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncGenerator[None]:
        while True:
            try:
                await self._app.open_async()
                break
            except Exception as error:  # noqa: BLE001 - a database that is not there yet
                self._report(f"the engine cannot be reached: {type(error).__name__}: {error}")
                await asyncio.sleep(_AGAIN_S)
        try:
            yield
        finally:
            await self._app.close_async()

    async def look(self) -> None:
        """Something that was delayed is due."""
        await self._connection.look()

    def begin_anew(self) -> None:
        """Under another number: the engine has forgotten this one, and would give it no job."""
        self.number = None
        if self._worker is not None:
            self._worker.stop()

    async def _run_once(self) -> None:
        """Until it is stopped, or its routes are others: what it has then goes on."""
        self._other_routes.clear()
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
        other_routes = asyncio.create_task(self._other_routes.wait())
        try:
            while worker.worker_id is None and not running.done():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(_APPEARS_S)
            if worker.worker_id is not None:
                self.number = worker.worker_id
                await self._appear(worker.worker_id)
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
            await asyncio.wait([running])
            raise
        finally:
            other_routes.cancel()
            self.number = None

    def _let_go(self) -> None:
        for carrying in self._carrying:
            carrying.cancel()

    def _left(self, running: "asyncio.Task[None]") -> None:
        self._leaving.discard(running)
        if not running.cancelled() and (error := running.exception()) is not None:
            self._report(f"the engine was lost: {type(error).__name__}: {error}")

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
