# pyright: basic, reportMissingTypeArgument=false
"""Procrastinate alone: an application with the same work, its callers and its worker.

`python -m bench.shared.theirs ADDRESS CONCURRENCY` is the worker. It is set up as its documentation
says, with the pool of connections that was the quickest here. Finished jobs stay, as they come.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from procrastinate import App, PsycopgConnector


class Theirs:
    """The application, for callers and for workers."""

    def __init__(self, address: str) -> None:
        self.app = App(connector=PsycopgConnector(conninfo=address, min_size=4, max_size=16))
        self._noop = self.app.task(name="noop")(_noop)
        self._command = self.app.task(name="command")(_command)
        self._moment = self.app.task(name="moment")(_moment)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """With its tables."""
        async with self.app.open_async():
            if not await self.app.check_connection_async():
                await self.app.schema_manager.apply_schema_async()
            yield

    async def noop(self) -> None:
        """Hand over a function that does nothing."""
        await self._noop.defer_async()

    async def command(self, arguments: list[str], output: str) -> None:
        """Hand over a program; what it prints goes to a file."""
        await self._command.defer_async(arguments=arguments, output=output)

    async def moment(self, output: str) -> None:
        """Hand over a function that writes down when it began."""
        await self._moment.defer_async(output=output)

    async def work(self, at_once: int) -> None:
        """Be a worker until SIGTERM."""
        async with self.app.open_async():
            print("takes on jobs", flush=True)
            await self.app.run_worker_async(concurrency=at_once)


async def _noop() -> None:
    """Do nothing."""


async def _command(arguments: list[str], output: str) -> int:
    with open(output, "ab") as file:  # noqa: ASYNC230 - it does not wait
        process = await asyncio.create_subprocess_exec(
            *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=file, stderr=file
        )
    return await process.wait()


async def _moment(output: str) -> None:
    Path(output).write_text(str(time.time_ns()))  # noqa: ASYNC240 - it does not wait


if __name__ == "__main__":
    asyncio.run(Theirs(sys.argv[1]).work(int(sys.argv[2])))
