"""The part of a node that is a worker of Procrastinate: it fetches jobs, and says that it lives."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import procrastinate
from procrastinate.worker import Worker

from backburner.store.engine import Job
from backburner.store.postgres.connection import conninfo
from backburner.store.postgres.engine import TASK, route_of

_APPEARS_S = 0.01
_AGAIN_S = 1.0
_LETS_GO_S = 1.0
"""How long a worker that has lost its database waits for its jobs, which go on without it."""


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
        connector = procrastinate.PsycopgConnector(
            conninfo=conninfo(address), min_size=1, max_size=4
        )
        self._app = procrastinate.App(connector=connector)
        self._queues = [route_of(queue) for queue in queues]
        self._concurrency = concurrency
        self._heartbeat_s = heartbeat_s
        self._silent_s = silent_s
        self._appear = appear
        self._report = report
        self._worker: Worker | None = None
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
                except Exception as error:  # noqa: BLE001 - a database that restarts is no end
                    self._report(f"the engine was lost: {type(error).__name__}: {error}")
                    await asyncio.sleep(_AGAIN_S)

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
            await asyncio.shield(running)
        except BaseException:
            worker.shutdown_graceful_timeout = _LETS_GO_S
            running.cancel()
            await asyncio.wait([running])
            raise

    def stop(self) -> None:
        """Fetch nothing more."""
        self._stopping = True
        if self._worker is not None:
            self._worker.stop()
