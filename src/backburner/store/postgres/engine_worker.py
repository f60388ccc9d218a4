"""The part of a node that is a worker of Procrastinate: it fetches jobs, and says that it lives."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import procrastinate
from procrastinate.worker import Worker

from backburner.store.engine import Job
from backburner.store.postgres.engine import TASK, route_of
from backburner.store.postgres.engine_connection import EngineConnection

_APPEARS_S = 0.01
_AGAIN_S = 1.0
_LETS_GO_S = 1.0
"""How long a worker that begins anew waits for its jobs, which go on without it."""


class EngineWorker:
    """Brings jobs to ``carry_out``, so many at once, until it is told to stop."""

    def __init__(
        self,
        address: str,
        *,
        queues: Sequence[str],
        concurrency: int,
        heartbeat_s: float,
        silent_s: float,
        appear: Callable[[int], Awaitable[None]],
        carry_out: Callable[[Job], Awaitable[None]],
        report: Callable[[str], None],
    ) -> None:
        """``appear`` is told under which number it works, each time that it begins anew."""
        logging.getLogger("procrastinate").setLevel(logging.CRITICAL)  # we report ourselves
        self._connection = EngineConnection(address, report)
        self._app = procrastinate.App(connector=self._connection)
        self._queues = [route_of(queue) for queue in queues]
        self._concurrency = concurrency
        self._heartbeat_s = heartbeat_s
        self._silent_s = silent_s
        self._appear = appear
        self._report = report
        self._worker: Worker | None = None
        self.number: int | None = None
        """Under which it works; None while it begins."""
        self._stopping = False

        async def bring(task: str, attempt: int) -> None:
            await carry_out(Job(task, attempt))

        self._app.task(name=TASK)(bring)

    async def run(self) -> None:
        """Returns when `stop` was called and the last job is over."""
        async with self._app.open_async():
            while not self._stopping:
                try:
                    await self._run_once()
                except Exception as error:  # noqa: BLE001 - jobs depend on us: begin anew
                    self._report(f"the engine was lost: {type(error).__name__}: {error}")
                    await asyncio.sleep(_AGAIN_S)

    async def look(self) -> None:
        """Something that was delayed is due."""
        await self._connection.look()

    def begin_anew(self) -> None:
        """Under another number: the engine has forgotten this one, and would give it no job."""
        if self._worker is not None:
            self._worker.shutdown_graceful_timeout = _LETS_GO_S
            self._worker.stop()

    async def _run_once(self) -> None:
        worker = self._worker = Worker(
            self._app,
            queues=self._queues,
            concurrency=self._concurrency,
            install_signal_handlers=False,
            update_heartbeat_interval=self._heartbeat_s,
            stalled_worker_timeout=self._silent_s,
            delete_jobs="always",
        )
        running = asyncio.create_task(worker.run())
        try:
            while worker.worker_id is None and not running.done():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(_APPEARS_S)
            if worker.worker_id is not None:
                await self._appear(worker.worker_id)
                self.number = worker.worker_id
            if self._stopping:  # it forgets what it was told before it ran
                worker.stop()
            await asyncio.shield(running)
        except BaseException:
            worker.shutdown_graceful_timeout = _LETS_GO_S
            running.cancel()
            await asyncio.wait([running])
            raise
        finally:
            self.number = None

    def stop(self) -> None:
        """Fetch nothing more."""
        self._stopping = True
        if self._worker is not None:
            self._worker.stop()
